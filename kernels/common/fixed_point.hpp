#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

/// Sums of clipped gradients are whole multiples of a power of two, the grid step. The numbers of
/// each example are rounded to the grid independently and added as integers modulo 2^64. So what an
/// example adds does not depend on the other examples of its batch, and the sum does not depend on
/// the order, the threads or the size of a micro-batch.

/// A sum as a whole multiple of its grid step (a power of two), signed, in two's complement.
using FixedPoint = unsigned long long;

/// Largest number that an example adds, and smallest max_norm, both in grid steps, for a sum of
/// gradients with norm <= max_norm. The step is the power of two (sum_grid) for which max_norm is
/// kMinUnits to 2 kMinUnits steps. So an example fits even if its norm was underestimated by half.
inline constexpr double kMaxUnits = 0x1p22;
inline constexpr double kMinUnits = 0x1p20;
inline double sum_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Conversion of a float v, |v| <= 2^22, to an integer: the bit pattern of v + kToUnits, read as an
/// integer, is kToUnitsBits plus the integer nearest to v. With a fused multiply-add, a product is
/// rounded only once, to an integer. Beyond 2^22 the result is meaningless; clamping v + kToUnits
/// to [kMinSum, kMaxSum] gives -2^22 or 2^22 instead.
inline constexpr float kToUnits = 0x1.8p23f;
inline constexpr std::int32_t kToUnitsBits = 0x4b400000;
inline constexpr float kMinSum = kToUnits - static_cast<float>(kMaxUnits);
inline constexpr float kMaxSum = kToUnits + static_cast<float>(kMaxUnits);

}  // namespace cudp
