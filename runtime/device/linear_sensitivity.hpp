#pragma once
#include <algorithm>
#include <cmath>

#include "runtime/base/ceil_log2.hpp"

namespace cudp {

/// Returns the grid, a power of two. If each summand is rounded to a multiple of it, a sum of
/// max_examples summands of at most `bound` is at most 2^52 times the grid, so it is exact in
/// double. max_examples: public bound, at least 1. The grid is never finer than bound 2^-24.
inline double linear_grid(double bound, double max_examples) {
  return std::ldexp(1.0, std::ilogb(bound) + 1 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the largest number of examples whose sum is exact if each is rounded to the grid that
/// linear_grid() returns. It is at least 2^28.
inline double linear_capacity(double max_examples) {
  return std::ldexp(1.0, 52 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the L2 sensitivity (add or remove one example) of a sum of at most max_examples
/// gradients clipped to max_norm. It includes the roundings to float (of |x|, C / |x| and c x, with
/// C = max_norm and c the derivative of the loss) and the rounding to the grid in each of d
/// coordinates.
inline double linear_gradient_sensitivity(double max_norm, int d, double max_examples) {
  return max_norm * (1.0 + 0x1p-21) +
         0.5 * std::sqrt(static_cast<double>(d)) * linear_grid(max_norm, max_examples);
}
/// Returns the sensitivity (add or remove one example) of a sum of losses clipped to max_loss, with
/// roundings.
inline double linear_loss_sensitivity(double max_loss, double max_examples) {
  return max_loss * (1.0 + 0x1p-23) + 0.5 * linear_grid(max_loss, max_examples);
}

}  // namespace cudp
