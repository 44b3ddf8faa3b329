#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

// Sums of clipped gradients are whole multiples of a power of two, the grid step. Each number of an
// example's gradient is rounded to a multiple of the grid step independently, and the multiples are
// added as integers modulo 2^64. So the integers that an example adds do not depend on the other
// examples of its batch. The sum does not depend on the order of additions, the number of threads
// or the size of a micro-batch.

/// A sum of rounded numbers, stored as an integer: the sum divided by its grid step. The grid step
/// is the power of two to whose multiples each number is rounded before it is added. The bits are
/// those of a signed integer in two's complement.
using FixedPoint = unsigned long long;

/// Limits that make sums of rounded gradients safe from overflow, in grid steps. The grid step,
/// sum_grid(max_norm), is the power of two for which max_norm, the largest norm of a clipped
/// gradient, is between kMinUnits and 2 kMinUnits grid steps. kMaxUnits, 4 kMinUnits, bounds each
/// number of a clipped gradient. It allows for a factor of 2: a gradient's norm may be computed as
/// only half of the true one, and the gradient is then clipped to a norm of up to 2 max_norm.
inline constexpr double kMaxUnits = 0x1p22;
inline constexpr double kMinUnits = 0x1p20;
inline double sum_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Constants that round a float v to an integer by one addition. If |v| <= 2^22, the bits of v +
/// kToUnits, read as an integer, are kToUnitsBits plus the integer nearest to v. If v = x y, the
/// fused multiply-add x y + kToUnits rounds only once, so the integer is the one nearest to the
/// exact product. For a larger |v| the result is meaningless, unless v + kToUnits is first clamped
/// to [kMinSum, kMaxSum], which gives -2^22 or 2^22.
inline constexpr float kToUnits = 0x1.8p23f;
inline constexpr std::int32_t kToUnitsBits = 0x4b400000;
inline constexpr float kMinSum = kToUnits - static_cast<float>(kMaxUnits);
inline constexpr float kMaxSum = kToUnits + static_cast<float>(kMaxUnits);

}  // namespace cudp
