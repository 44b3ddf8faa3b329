#pragma once
// Capacity of a recorded step, in examples. It is fixed before the batch is drawn.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/contribution/importance.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp::cuda {

/// A batch size that is exceeded with a probability below 1e-30: the expected size plus 12 standard
/// deviations and a constant.
inline double far_above(double expected, double variance) {
  return expected + 12.0 * std::sqrt(variance) + 32.0;
}

/// Capacity of a step that draws each of `examples` examples with probability at most threshold /
/// 2^32. A larger batch makes the run fail; it is never truncated.
inline std::int64_t batch_capacity(std::uint64_t threshold, std::size_t examples) {
  const double n = static_cast<double>(examples);
  const double q = static_cast<double>(threshold) * 0x1p-32;
  return static_cast<std::int64_t>(std::min(n, std::ceil(far_above(n * q, n * q * (1.0 - q)))));
}

/// Capacity of a step that uses `draw`. For candidates it is all examples, because the last norms
/// seen may have any value.
inline std::int64_t batch_capacity(const Draw& draw, std::size_t examples) {
  const auto* const poisson = std::get_if<Poisson>(&draw);
  return poisson != nullptr ? batch_capacity(poisson->threshold, examples)
                            : static_cast<std::int64_t>(examples);
}

/// Number of examples that a step is expected to draw. For candidates it is its capacity.
inline double expected_draw(const Draw& draw, std::size_t examples, std::int64_t capacity) {
  const auto* const poisson = std::get_if<Poisson>(&draw);
  return poisson != nullptr
             ? static_cast<double>(examples) * static_cast<double>(poisson->threshold) * 0x1p-32
             : static_cast<double>(capacity);
}

/// Capacity of a step that is recorded for the first time. If the norms add up to the sum that the
/// rule assumes, a draw of candidates draws `multiple` candidates for each example of the expected
/// batch. The capacity is a third more, whatever the rule's other numbers are. A larger batch is
/// not started: the step is recorded again with a larger capacity. expected_batch: expected number
/// of accepted candidates, or 0 if it is not known. If it is 0, the capacity is that of a rule
/// under which every norm has its largest value.
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

/// Number of examples for which memory is allocated. It depends on public numbers alone: running
/// out of memory is reported, so it must not depend on the number of examples or on their norms. A
/// larger batch is split into micro-batches. Returns nullopt if the expected batch is not known
/// (0).
inline std::optional<std::int64_t> public_room(const Draw& draw, double expected_batch) {
  if (expected_batch <= 0.0) return std::nullopt;
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const double mean = candidates == nullptr
                          ? expected_batch
                          : 4.0 / 3.0 * candidates->rule.multiple * expected_batch;
  return static_cast<std::int64_t>(std::ceil(far_above(mean, mean)));
}

}  // namespace cudp::cuda
