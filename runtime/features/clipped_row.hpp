#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace cudp {

/// x clipped to norm 1 and cut towards zero to whole numbers of 2^-bits, which is what row
/// receives: its norm is at most 2^bits exactly, rounding included, and sums of up to 2^(53 - bits)
/// rows are exact. All zeros where x is not finite. bits <= 26; row: [x.size()].
template <class T>
void clip_row(std::span<const T> x, int bits, double* row) {
  double square = 0.0;
  for (const T v : x) square += static_cast<double>(v) * static_cast<double>(v);
  // A little less than 1, so that rounding here does not matter.
  const double scale = (1.0 - 0x1p-30) / std::fmax(1.0, std::sqrt(square));
  double units = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    row[i] = std::trunc(std::ldexp(static_cast<double>(x[i]) * scale, bits));
    units += row[i] * row[i];  // exact
  }
  if (!(units <= std::ldexp(1.0, 2 * bits)))  // NaN and infinity too
    std::fill_n(row, x.size(), 0.0);
}

}  // namespace cudp
