#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/methods/plan.hpp"

namespace cudp {

/// Returns alpha of a step, > 0.
using NoiseOfStep = std::function<double(std::uint64_t step)>;

/// Returns alpha(t) / alpha(0) for 0 <= t < steps, with consecutive equal values merged; empty if
/// all are equal. alpha changes at multiples of `every` only. Throws InputError if a value is not
/// finite and > 0.
std::vector<NoiseSpan> noise_spans(std::uint64_t steps, const NoiseOfStep& alpha,
                                   std::uint64_t every = 1);

/// Resolution of rounded noise ratios: they are powers of 2^(1/kNoiseGrid). Thousands of different
/// steps become a few dozen, so that composing them takes milliseconds. The noise itself is
/// rounded, by at most 1.1 %, and the rounded noise is both drawn and accounted for, so the
/// rounding costs no privacy.
inline constexpr int kNoiseGrid = 32;
std::vector<NoiseSpan> noise_spans_on_grid(std::uint64_t steps, const NoiseOfStep& alpha);

}  // namespace cudp
