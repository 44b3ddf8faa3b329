#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/methods/plan.hpp"

namespace cudp {

/// Function that returns alpha > 0 for a step; the noise of the step is proportional to it.
using NoiseOfStep = std::function<double(std::uint64_t step)>;

/// Returns the noise of steps 0 <= t < steps relative to step 0, alpha(t) / alpha(0), as spans of
/// consecutive steps with equal values; empty if all are equal. `alpha` may change only at steps
/// that are multiples of `every`. Throws InputError if a value is not finite and > 0.
std::vector<NoiseSpan> noise_spans(std::uint64_t steps, const NoiseOfStep& alpha,
                                   std::uint64_t every = 1);

/// Noise levels are rounded to powers of 2^(1/kNoiseGrid). Thousands of different steps then have a
/// few dozen different levels, so that composing them takes milliseconds. Rounding changes the
/// noise by at most 1.1 %. The rounded noise is both drawn and accounted for, so it costs no
/// privacy.
inline constexpr int kNoiseGrid = 32;
std::vector<NoiseSpan> noise_spans_on_grid(std::uint64_t steps, const NoiseOfStep& alpha);

}  // namespace cudp
