#pragma once
// fp16 numbers as bits. Their values are exact in float.
#include <cstring>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

/// Returns value rounded to fp16: to nearest, ties to even, numbers beyond the largest to infinity.
/// NaN becomes the canonical NaN.
template <class Float>
u16 half_bits(Float value) {
  const auto half = static_cast<_Float16>(value);
  u16 bits = 0;
  std::memcpy(&bits, &half, sizeof bits);
  return value != value ? u16{0x7fff} : bits;
}

[[gnu::always_inline]] inline float half_value(u16 bits) {
  const bool finite = (bits & 0x7c00u) != 0x7c00u;
  const u32 wide = u32{bits & 0x7fffu} << 13 | (finite ? 0 : 0x7f800000u);
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  if (finite) value *= 0x1p112f;  // the exponents' biases are 15 and 127
  return (bits & 0x8000u) != 0 ? -value : value;
}

inline u16 low_half(u32 both) { return static_cast<u16>(both); }
inline u16 high_half(u32 both) { return static_cast<u16>(both >> 16); }

}  // namespace cudp::ptx
