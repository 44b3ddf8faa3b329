#pragma once
// Capacity of a recorded step (CUDA graph), in examples. It is fixed before the batch is drawn.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/contribution/importance.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp::cuda {

/// Returns a number that a batch size with this mean and variance exceeds with a probability below
/// 1e-30: the mean plus 12 standard deviations and a constant.
inline double max_likely_batch(double expected, double variance) {
  return expected + 12.0 * std::sqrt(variance) + 32.0;
}

/// Returns the capacity [examples] of a recorded step that draws each of `examples` examples with
/// probability at most q. If a batch is larger, the run fails; no example is dropped.
inline std::int64_t capacity_at_rate(double q, std::size_t examples) {
  const double n = static_cast<double>(examples);
  return static_cast<std::int64_t>(
      std::min(n, std::ceil(max_likely_batch(n * q, n * q * (1.0 - q)))));
}

/// Returns the largest capacity [examples] that a recorded step may need with this kind of draw.
/// For importance sampling it is the number of all examples, because the stored norms may have any
/// value.
inline std::int64_t batch_capacity(const Draw& draw, std::size_t examples) {
  return std::holds_alternative<Candidates>(draw) ? static_cast<std::int64_t>(examples)
                                                  : capacity_at_rate(rate_of(draw), examples);
}

/// Returns the expected number of examples that a step draws. For importance sampling, where it
/// depends on private norms, returns `capacity`.
inline double expected_draw(const Draw& draw, std::size_t examples, std::int64_t capacity) {
  return std::holds_alternative<Candidates>(draw) ? static_cast<double>(capacity)
                                                  : static_cast<double>(examples) * rate_of(draw);
}

/// Returns the capacity [examples] with which a step is recorded first. expected_batch: for
/// importance sampling, the expected number of accepted examples; 0 if unknown.
///
/// If the stored norms add up to the sum that the sampling rule assumes, importance sampling draws
/// rule.multiple examples for each one that it accepts. The capacity is 4/3 of that number, plus a
/// margin. If expected_batch is 0, it is large enough for norms that all have their largest value.
/// A batch that exceeds the capacity is not started: the step is recorded again with a larger one.
inline std::int64_t first_capacity(const Draw& draw, std::size_t examples, double expected_batch) {
  const auto* const candidates = std::get_if<Candidates>(&draw);
  if (candidates == nullptr) return batch_capacity(draw, examples);
  const ImportanceRule& rule = candidates->rule;
  if (expected_batch <= 0.0)
    return capacity_at_rate(
        static_cast<double>(candidate_threshold(rule, static_cast<float>(rule.clip))) * 0x1p-32,
        examples);
  const double mean = 4.0 / 3.0 * rule.multiple * expected_batch;
  return static_cast<std::int64_t>(
      std::min(static_cast<double>(examples), std::ceil(max_likely_batch(mean, mean))));
}

/// Returns the number of examples for which device memory is allocated; empty if the expected batch
/// is unknown (0). It depends on public numbers alone: an allocation that fails is reported, so the
/// size must not depend on the number of examples or on their norms. A larger batch is split into
/// micro-batches.
inline std::optional<std::int64_t> public_capacity(const Draw& draw, double expected_batch) {
  if (expected_batch <= 0.0) return std::nullopt;
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const double mean = candidates == nullptr
                          ? expected_batch
                          : 4.0 / 3.0 * candidates->rule.multiple * expected_batch;
  return static_cast<std::int64_t>(std::ceil(max_likely_batch(mean, mean)));
}

}  // namespace cudp::cuda
