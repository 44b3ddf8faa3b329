#pragma once
#include <algorithm>
#include <cmath>

#include "runtime/base/ceil_log2.hpp"

namespace cudp {

/// Returns the grid on which sums of `max_examples` numbers up to `bound` are exact, because they
/// are at most 2^52 grid steps. max_examples: public bound, at least 1. The grid is never finer
/// than bound 2^-24.
inline double linear_grid(double bound, double max_examples) {
  return std::ldexp(1.0, std::ilogb(bound) + 1 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the largest number of examples whose sums on the grid of linear_grid() are exact. It is
/// at least 2^28.
inline double linear_capacity(double max_examples) {
  return std::ldexp(1.0, 52 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the L2 sensitivity of a sum of gradients clipped to max_norm to one example. It includes
/// the roundings to float (of |x|, C / |x| and c x) and the rounding to the grid in each of d
/// coordinates.
inline double linear_gradient_sensitivity(double max_norm, int d, double max_examples) {
  return max_norm * (1.0 + 0x1p-21) +
         0.5 * std::sqrt(static_cast<double>(d)) * linear_grid(max_norm, max_examples);
}
/// Returns the sensitivity of a sum of losses clipped to max_loss.
inline double linear_loss_sensitivity(double max_loss, double max_examples) {
  return max_loss * (1.0 + 0x1p-23) + 0.5 * linear_grid(max_loss, max_examples);
}

}  // namespace cudp
