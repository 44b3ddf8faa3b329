#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace cudp {

/// Clips the vector x to L2 norm 1, multiplies it by 2^bits and rounds towards zero to whole
/// numbers. row: the result, [x.size()]; all zeros if x has a NaN or an infinity. Its norm is at
/// most 2^bits, rounding included, and sums of up to 2^(53 - bits) such rows are exact in double.
/// Requires bits <= 26.
template <class T>
void clip_row(std::span<const T> x, int bits, double* row) {
  double square = 0.0;
  for (const T v : x) square += static_cast<double>(v) * static_cast<double>(v);
  // The factor 1 - 2^-30 makes the scale smaller than the exact one, by more than the rounding
  // errors of its computation.
  const double scale = (1.0 - 0x1p-30) / std::fmax(1.0, std::sqrt(square));
  double units = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    row[i] = std::trunc(std::ldexp(static_cast<double>(x[i]) * scale, bits));
    units += row[i] * row[i];  // exact
  }
  if (!(units <= std::ldexp(1.0, 2 * bits)))  // false for NaN and infinity
    std::fill_n(row, x.size(), 0.0);
}

}  // namespace cudp
