#pragma once
// Weight gradient of a 3x3 convolution by tensor cores, from patches: a patch is the part of the
// input x and of the output's gradient dy that a block needs at a time. It is copied to shared
// memory unchanged and serves all nine taps of the kernel. Taps and pixels are offsets into it.
#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Number of taps (positions) of a 3x3 kernel.
inline constexpr int kPatchTaps = 9;
/// Number of input channels per thread block: a block computes the gradient of the weights of these
/// channels, for all nine taps of the 3x3 kernel.
inline constexpr int kPatchChannels = 32;
/// Number of rows of a block's weight gradient: one per input channel and tap.
inline constexpr int kPatchRows = kPatchChannels * kPatchTaps;
inline constexpr int kMaxPatchTerms = 64;

/// Part of a convolution that a thread block multiplies at a time (a patch): `lines` rows of output
/// pixels, and the rows of the input x that they depend on. lines = 0 means that this method is not
/// used.
struct ConvPatch {
  Planes x;
  Planes dy;
  int stride = 1;
  int corner = 0;  ///< row and column in x, with borders, of the first output pixel's first tap
  int lines = 0;

  // Distances in shared memory [floats], chosen to avoid conflicts in its 32 banks; set by
  // with_lines().
  int x_row = 0;  ///< from row to row of x; 8 modulo 16
  /// Distance from channel to channel of x. x_plane + x_row is a multiple of 32, so that two of
  /// eight consecutive rows of the gradient read the same number or different banks.
  int x_plane = 0;
  /// Distance from channel to channel of dy; 4 modulo 8, so that eight columns are in different
  /// banks.
  int dy_plane = 0;
  int size = 0;  ///< size of a patch, x and dy [floats]
  Divisor x_lines = {};
  Divisor x_fours = {};  ///< number of groups of four floats in a row of x
  /// Number of groups of four floats in the patch's rows of a channel of dy.
  Divisor dy_fours = {};
};

/// Number of threads per block in the kernel that computes norms of gradients; patch_sum_threads():
/// in the kernel that adds gradients up. A warp computes 48 rows of a block's tile, with all
/// columns for a norm, 32 columns for a sum.
inline constexpr unsigned kPatchNormThreads = 192;
constexpr unsigned patch_sum_threads(int columns) { return columns <= 32 ? 192 : 384; }

/// Number of examples per block of the sum of gradients; it divides a micro-batch. For each block,
/// 18,432 numbers are added to the sum in memory, 64 bits each.
inline constexpr int kPatchExamples = 8;

/// Returns the number of output channels of a block's tile, 32 or 64.
CUDP_HD int patch_columns(int columns) { return columns <= 32 ? 32 : 64; }

/// Returns p for `lines` rows of output pixels, with the distances in shared memory that follow.
/// columns: number of output channels.
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

/// Shared memory for two patches, one that is multiplied and one that is copied [bytes].
inline std::size_t patch_bytes(const ConvPatch& p) {
  return 2 * sizeof(float) * static_cast<std::size_t>(p.size);
}

/// Returns whether the rows of p can be copied in parts of 16 bytes and have more than one such
/// part.
inline bool copies_by_fours(const Planes& p) { return p.row() % 4 == 0 && p.row() > 4; }

/// Returns p with the largest number of output rows for which two patches fit into shared_bytes and
/// the number of output pixels is a multiple of 8, as tensor cores need. lines = 0 if rows cannot
/// be copied in parts of 16 bytes, or no such number divides the image.
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
