#pragma once
// The weight gradient of a 3x3 convolution by tensor cores, from patches of its planes: what a
// block needs of them, copied to shared memory as it lies, serves all nine taps. Taps and pixels
// are offsets into it.
#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

inline constexpr int kPatchTaps = 9;
/// A block's rows: whole channels of x.
inline constexpr int kPatchChannels = 32;
inline constexpr int kPatchRows = kPatchChannels * kPatchTaps;
inline constexpr int kMaxPatchTerms = 64;

/// The part that is multiplied at a time: `lines` rows of output pixels, and the rows of x that
/// they see. Without lines there are no patches.
struct ConvPatch {
  Planes x;
  Planes dy;
  int stride = 1;
  int corner = 0;  ///< row and column of x, borders counted, where the first pixel's first tap lies
  int lines = 0;

  // Of shared memory, chosen for its 32 banks; set by with_lines().
  int x_row = 0;     ///< 8 modulo 16; and a plane with one row more is 0 modulo 32:
  int x_plane = 0;   ///< two of eight neighbouring rows of the gradient share a number or no bank
  int dy_plane = 0;  ///< 4 modulo 8: eight columns lie in different banks
  int size = 0;      ///< of a patch, floats
  Divisor x_lines = {};
  Divisor x_fours = {};   ///< of a row
  Divisor dy_fours = {};  ///< of a plane
};

/// Threads of a block: warps of 48 rows, and of all the tile's columns or, in a sum, of 32.
inline constexpr unsigned kPatchNormThreads = 192;
constexpr unsigned patch_sum_threads(int columns) { return columns <= 32 ? 192 : 384; }

/// Examples a block of the sum takes; divides a micro-batch. Its 18,432 numbers go to the sum as 64
/// bits each.
inline constexpr int kPatchExamples = 8;

CUDP_HD int patch_columns(int columns) { return columns <= 32 ? 32 : 64; }

/// p with as many lines, for a gradient with as many columns.
inline ConvPatch with_lines(ConvPatch p, int lines, int columns) {
  p.lines = lines;
  p.x_lines = Divisor((lines - 1) * p.stride + 3);
  p.x_fours = Divisor(p.x.row() / 4);
  p.dy_fours = Divisor(lines * p.dy.row() / 4);
  p.x_row = (p.x.row() + 7) / 16 * 16 + 8;
  p.x_plane = p.x_lines.n * p.x_row;
  while ((p.x_plane + p.x_row) % 32 != 0) ++p.x_plane;
  p.dy_plane = lines * p.dy.row() / 8 * 8 + 4;
  p.size = kPatchChannels * p.x_plane + patch_columns(columns) * p.dy_plane;
  return p;
}

/// Two patches: one is multiplied while the other is copied.
inline std::size_t patch_bytes(const ConvPatch& p) {
  return 2 * sizeof(float) * static_cast<std::size_t>(p.size);
}

/// Rows can be copied by 16 bytes, and there are several such parts in each.
inline bool copies_by_fours(const Planes& p) { return p.row() % 4 == 0 && p.row() > 4; }

/// The number of lines that `shared_bytes` have room for, in whole steps of 8 terms; none where
/// rows cannot be copied by 16 bytes, or lines do not divide the image.
inline ConvPatch conv_patch(const ConvPatch& p, int columns, std::size_t shared_bytes) {
  ConvPatch best = p;
  best.lines = 0;
  if (!copies_by_fours(p.x) || !copies_by_fours(p.dy)) return best;
  for (int lines = 1; lines <= p.dy.height && lines * p.dy.width <= kMaxPatchTerms; ++lines) {
    const ConvPatch next = with_lines(p, lines, columns);
    if (p.dy.height % lines == 0 && lines * p.dy.width % 8 == 0 &&
        patch_bytes(next) <= shared_bytes)
      best = next;
  }
  return best;
}

}  // namespace cudp
