#pragma once
// Sums and per-example results of the oracle for tables, compared with those of an engine.
#include <cstddef>

#include <gtest/gtest.h>

#include "tests/support/coded_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp::cases {

/// Returns the sum of one step by the oracle, which reads the rows as dense ones.
inline reference::Values oracle_sum(const InfluenceCase& c) {
  reference::ReferenceEngine oracle(c.net, c.settings);
  oracle.load(dense(c.data));
  oracle.set_state(c.state);
  const StepScalars one = still(0.0f, c.clip_norm);
  oracle.run(c.settings.recipe, 3, {&one, 1});
  return oracle.sum();
}

/// Compares losses and gradients of the same examples.
inline void expect_same_gradients(const PerExample& got, const PerExample& want) {
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * (1 + want.losses[i]));
  const Distance d = distance(got.gradients.data(), want.gradients.data(), want.gradients.size());
  EXPECT_LE(d.error, 1e-5 * (1.0 + d.size));
}

}  // namespace cudp::cases
