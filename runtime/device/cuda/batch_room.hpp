#pragma once
// For how many examples a step is recorded, which is before anybody knows how many are drawn.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/contribution/importance.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp::cuda {

/// 12 standard deviations and some more above the expected batch, so that a larger one has a
/// probability below 1e-30.
inline double far_above(double expected, double variance) {
  return expected + 12.0 * std::sqrt(variance) + 32.0;
}

/// The largest batch that a step has room for where each of so many examples is drawn with
/// probability threshold / 2^32 at most. With a larger one the run fails, it is never cut.
inline std::int64_t batch_capacity(std::uint64_t threshold, std::size_t examples) {
  const double n = static_cast<double>(examples);
  const double q = static_cast<double>(threshold) * 0x1p-32;
  return static_cast<std::int64_t>(std::min(n, std::ceil(far_above(n * q, n * q * (1.0 - q)))));
}

/// The same for a draw. Of candidates: all examples, since any norms may have been seen last.
inline std::int64_t batch_capacity(const Draw& draw, std::size_t examples) {
  const auto* const poisson = std::get_if<Poisson>(&draw);
  return poisson != nullptr ? batch_capacity(poisson->threshold, examples)
                            : static_cast<std::int64_t>(examples);
}

/// The room of a step that is recorded for the first time. A draw of candidates makes `multiple`
/// for each example of the expected batch where norms add up to what the rule took them for; a
/// third more have room, whatever the rule's other numbers are. A larger batch is not begun; the
/// step is recorded anew with more room then.
/// expected_batch: of accepted candidates. Where that is 0, not known, there is room for as many as
/// there would be if every norm were as large as it can be.
inline std::int64_t first_room(const Draw& draw, std::size_t examples, double expected_batch) {
  const auto* const candidates = std::get_if<Candidates>(&draw);
  if (candidates == nullptr) return batch_capacity(draw, examples);
  const ImportanceRule& rule = candidates->rule;
  if (expected_batch <= 0.0)
    return batch_capacity(candidate_threshold(rule, static_cast<float>(rule.clip)), examples);
  const double mean = 4.0 / 3.0 * rule.multiple * expected_batch;
  return static_cast<std::int64_t>(
      std::min(static_cast<double>(examples), std::ceil(far_above(mean, mean))));
}

/// The examples that memory is asked for, from public numbers alone: whether it runs out is said,
/// and may not follow how many examples there are, or their norms. A larger batch is a micro-batch
/// after the other. Empty where the expected batch is not known (0).
inline std::optional<std::int64_t> public_room(const Draw& draw, double expected_batch) {
  if (expected_batch <= 0.0) return std::nullopt;
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const double mean = candidates == nullptr
                          ? expected_batch
                          : 4.0 / 3.0 * candidates->rule.multiple * expected_batch;
  return static_cast<std::int64_t>(std::ceil(far_above(mean, mean)));
}

}  // namespace cudp::cuda
