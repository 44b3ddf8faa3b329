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

/// Returns a batch size that is exceeded with a probability below 1e-30: the mean plus 12 standard
/// deviations plus 32. expected, variance: mean and variance of the batch size.
inline double max_likely_batch(double expected, double variance) {
  return expected + 12.0 * std::sqrt(variance) + 32.0;
}

/// Returns the largest batch that a step recorded as a CUDA graph should be able to process
/// [examples], if each of `examples` examples is drawn with probability at most q. A larger batch
/// has a probability below 1e-30; the run then fails, and no example is dropped.
inline std::int64_t capacity_at_rate(double q, std::size_t examples) {
  const double n = static_cast<double>(examples);
  return static_cast<std::int64_t>(
      std::min(n, std::ceil(max_likely_batch(n * q, n * q * (1.0 - q)))));
}

/// Returns the largest batch that a step recorded as a CUDA graph may have to process with this
/// kind of draw [examples]. With importance sampling it is the number of all examples, because the
/// stored gradient norms, on which the draw depends, may have any value.
inline std::int64_t batch_capacity(const Draw& draw, std::size_t examples) {
  return std::holds_alternative<Candidates>(draw) ? static_cast<std::int64_t>(examples)
                                                  : capacity_at_rate(rate_of(draw), examples);
}

/// Returns the expected number of examples that a step draws from `examples` examples in the way
/// that `draw` describes. With importance sampling it would depend on the examples' gradient norms,
/// which are private; the function then returns `capacity`.
inline double expected_draw(const Draw& draw, std::size_t examples, std::int64_t capacity) {
  return std::holds_alternative<Candidates>(draw) ? static_cast<double>(capacity)
                                                  : static_cast<double>(examples) * rate_of(draw);
}

/// Returns the largest batch that a step can process when it is first recorded as a CUDA graph
/// [examples]. If a later batch is larger, the step is recorded again before it starts. draw: how
/// batches are drawn. examples: number of examples in the data set. expected_batch: for importance
/// sampling, the expected number of accepted examples; 0 if unknown.
///
/// For Poisson sampling and random allocation, returns batch_capacity(); expected_batch is not
/// used.
///
/// For importance sampling, the expected number of drawn examples is ImportanceRule::multiple times
/// expected_batch, if the sum of the stored norms is what the rule assumes. Returns 4/3 of that
/// number plus a margin. If expected_batch is 0, returns a capacity that suffices if all stored
/// norms have their largest value, the clipping norm.
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

/// Returns the number of examples for which device memory is allocated; nullopt if expected_batch
/// is 0, which means that the expected batch is unknown. Larger batches are split into
/// micro-batches. The result depends on public numbers alone, not on the number of examples or on
/// their norms, because the user sees whether an allocation fails. draw: how batches are drawn.
inline std::optional<std::int64_t> public_capacity(const Draw& draw, double expected_batch) {
  if (expected_batch <= 0.0) return std::nullopt;
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const double mean = candidates == nullptr
                          ? expected_batch
                          : 4.0 / 3.0 * candidates->rule.multiple * expected_batch;
  return static_cast<std::int64_t>(std::ceil(max_likely_batch(mean, mean)));
}

}  // namespace cudp::cuda
