#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

// Sums of clipped gradients are whole multiples of a power of two, the grid step. The numbers of
// each example are rounded to the grid independently and added as integers modulo 2^64. So what an
// example adds does not depend on the other examples of its batch, and the sum does not depend on
// the order, the threads or the size of a micro-batch.

/// A sum of rounded numbers, stored as an integer: the sum divided by its grid step. The grid step
/// is the power of two to whose multiples each number is rounded before it is added. The integer is
/// signed, in two's complement.
using FixedPoint = unsigned long long;

/// Limits that make sums of rounded gradients safe from overflow. The grid step,
/// sum_grid(max_norm), is the power of two for which the largest gradient norm, max_norm, is
/// kMinUnits to 2 kMinUnits steps. A number of a clipped gradient may then be up to kMaxUnits
/// steps, twice the 2 kMinUnits of the largest norm, because the norm by which it was clipped may
/// have been computed as only half of the true one.
inline constexpr double kMaxUnits = 0x1p22;
inline constexpr double kMinUnits = 0x1p20;
inline double sum_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Constants that round a float v to an integer by one addition. If |v| <= 2^22, the bits of v +
/// kToUnits, read as an integer, are kToUnitsBits plus the integer nearest to v. If v is a product,
/// a fused multiply-add rounds only once. For a larger |v| the result is meaningless, unless v +
/// kToUnits is first clamped to [kMinSum, kMaxSum], which gives -2^22 or 2^22.
inline constexpr float kToUnits = 0x1.8p23f;
inline constexpr std::int32_t kToUnitsBits = 0x4b400000;
inline constexpr float kMinSum = kToUnits - static_cast<float>(kMaxUnits);
inline constexpr float kMaxSum = kToUnits + static_cast<float>(kMaxUnits);

}  // namespace cudp
