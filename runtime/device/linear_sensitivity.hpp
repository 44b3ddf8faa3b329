#pragma once
#include <algorithm>
#include <cmath>

#include "runtime/base/ceil_log2.hpp"

namespace cudp {

/// Returns the grid of a sum: the power of two to whose multiples its summands are rounded. The sum
/// of max_examples summands, each at most `bound`, is at most 2^52 grid steps, so it is exact in
/// double. The grid is at least 2^-24 times `bound`. max_examples: public upper bound on the number
/// of examples, at least 1.
inline double linear_grid(double bound, double max_examples) {
  return std::ldexp(1.0, std::ilogb(bound) + 1 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the largest number of examples whose sum is exact in double if the summands are rounded
/// to multiples of the grid that linear_grid() returns for max_examples. It is at least 2^28.
inline double linear_capacity(double max_examples) {
  return std::ldexp(1.0, 52 - std::clamp(52 - ceil_log2(max_examples), 1, 24));
}

/// Returns the L2 sensitivity, for adding or removing one example, of a sum of at most max_examples
/// gradients clipped to norm max_norm = C. d: number of weights. The result includes the effects of
/// rounding to float (of |x|, of C / |x|, and of the product of the loss's derivative with x) and
/// of rounding each of the d coordinates to the grid.
inline double linear_gradient_sensitivity(double max_norm, int d, double max_examples) {
  return max_norm * (1.0 + 0x1p-21) +
         0.5 * std::sqrt(static_cast<double>(d)) * linear_grid(max_norm, max_examples);
}
/// Returns the sensitivity, for adding or removing one example, of a sum of at most max_examples
/// losses clipped to max_loss. The result includes the effects of rounding.
inline double linear_loss_sensitivity(double max_loss, double max_examples) {
  return max_loss * (1.0 + 0x1p-23) + 0.5 * linear_grid(max_loss, max_examples);
}

}  // namespace cudp
