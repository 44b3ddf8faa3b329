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
/// Number of rows of the weight gradient that a block computes: one for each of its input channels
/// and each tap (position of the 3x3 kernel).
inline constexpr int kPatchRows = kPatchChannels * kPatchTaps;
/// Maximum number of output pixels of a patch.
inline constexpr int kMaxPatchTerms = 64;

/// A patch, the part of a convolution whose products a thread block adds at once to the weight
/// gradient: `lines` rows of output pixels. It consists of these rows of dy, the gradient of the
/// output, and of the rows of the input x that the output pixels depend on. lines = 0 means that
/// the convolution is not computed from patches.
struct ConvPatch {
  Planes x;
  Planes dy;
  int stride = 1;
  /// Row of x (its borders included) that the upper left kernel position reads for the first output
  /// pixel. The column is the same number.
  int corner = 0;
  int lines = 0;

  // Distances in shared memory [floats], chosen to avoid conflicts in its 32 banks; set by
  // with_lines().
  int x_row = 0;  ///< distance in shared memory between consecutive rows of x [floats]; 8 modulo 16
  /// Distance in shared memory between consecutive channels of x [floats]. x_plane + x_row is a
  /// multiple of 32, so that any two of eight consecutive rows of the weight gradient read either
  /// the same number or different banks.
  int x_plane = 0;
  /// Distance in shared memory between consecutive channels of dy [floats]; 4 modulo 8, so that
  /// eight columns of the gradient are in different banks.
  int dy_plane = 0;
  int size = 0;  ///< size of a patch, x and dy [floats]
  Divisor x_lines = {};
  Divisor x_fours = {};  ///< number of groups of four floats in a row of x
  /// Number of groups of four floats that the patch has per channel of dy.
  Divisor dy_fours = {};
};

/// Number of threads per block in the kernel that computes the norms of gradients.
/// (patch_sum_threads() returns the number in the kernel that adds gradients up.) A warp computes
/// 48 rows of a block's tile: with all columns for a norm, with 32 columns for a sum.
inline constexpr unsigned kPatchNormThreads = 192;
constexpr unsigned patch_sum_threads(int columns) { return columns <= 32 ? 192 : 384; }

/// Number of examples whose gradients one block adds up; a micro-batch is divided into groups of
/// this size. At the end a block adds its 18,432 numbers to the 64-bit sums in memory.
inline constexpr int kPatchExamples = 8;

/// Returns the number of output channels of a block's tile, 32 or 64. columns: number of output
/// channels of the convolution.
CUDP_HD int patch_columns(int columns) { return columns <= 32 ? 32 : 64; }

/// Returns p with `lines` rows of output pixels, and with the distances in shared memory that
/// follow from that number. columns: number of output channels.
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

/// Returns the shared memory for two patches, one that is multiplied and one that is copied
/// meanwhile [bytes]. p: sizes of the patches.
inline std::size_t patch_bytes(const ConvPatch& p) {
  return 2 * sizeof(float) * static_cast<std::size_t>(p.size);
}

/// Returns whether the rows of layout p consist of whole groups of four floats, and of more than
/// one: they can then be copied in parts of 16 bytes.
inline bool copies_by_fours(const Planes& p) { return p.row() % 4 == 0 && p.row() > 4; }

/// Returns p with the largest possible number of output rows (`lines`). Two patches must fit into
/// shared_bytes, the number must divide the image's rows, and the number of output pixels in a
/// patch must be a multiple of 8, as tensor cores need. lines = 0 if no number is possible, or if
/// rows cannot be copied in parts of 16 bytes. columns: number of output channels.
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
