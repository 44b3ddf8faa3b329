#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/methods/plan.hpp"

namespace cudp {

/// alpha of a step, > 0.
using NoiseOfStep = std::function<double(std::uint64_t step)>;

/// alpha(t) / alpha(0) for 0 <= t < steps, neighbours of equal noise merged. Empty where all are.
/// Throws InputError where one is no number > 0.
std::vector<NoiseSpan> noise_spans(std::uint64_t steps, const NoiseOfStep& alpha);

/// Spans with every ratio rounded to the nearest power of 2^(1/kNoiseGrid): thousands of different
/// steps become some dozens, so that composing them takes milliseconds. It is the noise itself that
/// is rounded, by at most 1.1 %, and what is drawn is what is accounted for: the grouping costs no
/// privacy.
inline constexpr int kNoiseGrid = 32;
std::vector<NoiseSpan> noise_spans_on_grid(std::uint64_t steps, const NoiseOfStep& alpha);

}  // namespace cudp
