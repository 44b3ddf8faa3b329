#pragma once
#include <cmath>
#include <cstddef>

namespace cudp {

/// The grid on which sums of numbers up to `bound` are exact: kMostLinearExamples of them add up to
/// less than 2^53 units.
inline double linear_grid(double bound) { return std::ldexp(1.0, std::ilogb(bound) + 1 - 24); }
inline constexpr std::size_t kMostLinearExamples = std::size_t{1} << 28;

/// By how much one example can move the sum of gradients clipped to max_norm, in L2, whatever the
/// others are: roundings to float (of |x|, C / |x| and c x), and one to the grid in each of d
/// coordinates.
inline double linear_gradient_sensitivity(double max_norm, int d) {
  return max_norm * (1.0 + 0x1p-21) +
         0.5 * std::sqrt(static_cast<double>(d)) * linear_grid(max_norm);
}
/// The same of a sum of losses clipped to max_loss.
inline double linear_loss_sensitivity(double max_loss) {
  return max_loss * (1.0 + 0x1p-23) + 0.5 * linear_grid(max_loss);
}

}  // namespace cudp
