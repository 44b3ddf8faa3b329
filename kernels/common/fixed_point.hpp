#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

/// Sums of clipped gradients are whole multiples of a power of two, the grid step. The numbers of
/// each example are rounded to the grid independently and added as integers modulo 2^64. So what an
/// example adds does not depend on the other examples of its batch, and the sum does not depend on
/// the order, the threads or the size of a micro-batch.

/// A sum of rounded numbers, stored as an integer: the sum divided by its grid step. The grid step
/// is the power of two to whose multiples each number is rounded before it is added. The integer is
/// signed, in two's complement.
using FixedPoint = unsigned long long;

/// Bounds, in grid steps, for a sum of gradients with norm <= max_norm whose numbers are rounded to
/// the grid. The grid step is the power of two that sum_grid(max_norm) returns. kMaxUnits: bound on
/// each number that one example adds. kMinUnits: lower bound on max_norm, which is below 2
/// kMinUnits. So an example's numbers stay within kMaxUnits even if its norm was underestimated by
/// half.
inline constexpr double kMaxUnits = 0x1p22;
inline constexpr double kMinUnits = 0x1p20;
inline double sum_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Constants to convert a float v, |v| <= 2^22, to an integer: the bit pattern of v + kToUnits,
/// read as an integer, is kToUnitsBits plus the integer nearest to v. If v is a product, a fused
/// multiply-add computes v + kToUnits with a single rounding. If |v| > 2^22, the result is
/// meaningless; v + kToUnits may be clamped to [kMinSum, kMaxSum], which gives -2^22 or 2^22.
inline constexpr float kToUnits = 0x1.8p23f;
inline constexpr std::int32_t kToUnitsBits = 0x4b400000;
inline constexpr float kMinSum = kToUnits - static_cast<float>(kMaxUnits);
inline constexpr float kMaxSum = kToUnits + static_cast<float>(kMaxUnits);

}  // namespace cudp
