#pragma once
#include <cmath>
#include <cstdint>

namespace cudp {

/// Sums of clipped gradients are whole multiples of a grid, a power of two. Every example's numbers
/// are rounded to it by themselves and added as integers modulo 2^64. So what an example adds does
/// not depend on the examples beside it, nor the sum on their order, on threads or on the size of a
/// micro-batch.

/// Two's complement, in units of the grid.
using FixedPoint = unsigned long long;

/// The grid for gradients of norm <= max_norm, a function of that alone: max_norm is kMinUnits to
/// twice as many, so that kMaxUnits hold a number of one even where its norm was taken too small
/// by half.
inline constexpr double kMaxUnits = 0x1p22;
inline constexpr double kMinUnits = 0x1p20;
inline double sum_grid(double max_norm) { return std::ldexp(1.0, std::ilogb(max_norm) - 20); }

/// Adding this to v, |v| <= 2^22, leaves the integer nearest to v in the low bits of the result's
/// pattern: with a fused multiply-add a product is rounded once, and to an integer.
/// Beyond 2^22 the low bits are no number at all: a sum held to kMinSum and kMaxSum gives -2^22
/// and 2^22 instead.
inline constexpr float kToUnits = 0x1.8p23f;
inline constexpr std::int32_t kToUnitsBits = 0x4b400000;
inline constexpr float kMinSum = kToUnits - static_cast<float>(kMaxUnits);
inline constexpr float kMaxSum = kToUnits + static_cast<float>(kMaxUnits);

}  // namespace cudp
