#pragma once
// Weight gradient of a 3x3 convolution by tensor cores in fp16, from patches: a patch is the part
// of the input x and of the output's gradient dy that a block needs at a time. It is copied to
// shared memory, rounded to fp16, and serves all nine taps of the kernel. Taps and pixels are
// offsets into it.
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
inline constexpr int kMaxPatchTerms = 256;
/// Number of products that a tensor core adds at once.
inline constexpr int kPatchStep = 16;
/// Number of channels of a chunk: the fp16 numbers of a pixel that are neighbours in shared memory,
/// 16 bytes.
inline constexpr int kChunkChannels = 8;
/// Number of threads of a block: a warp for each tap, and one for the gradient of the bias.
inline constexpr unsigned kPatchThreads = (kPatchTaps + 1) * 32;

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

  // Numbers of pixels that are copied, set by with_lines(). They are also the distances between
  // consecutive groups of kChunkChannels channels in shared memory [chunks], plus 1 for dy: after
  // the pixels of each group there is a chunk of zeros.
  Divisor x_pixels = {};
  Divisor dy_pixels = {};
};

/// Returns the largest number of output channels of a block's tile, 32 or 64. A block that computes
/// norms has a tile of this size, one that adds gradients a tile of kPatchSumColumns. columns:
/// number of output channels of the convolution.
CUDP_HD int patch_columns(int columns) { return columns <= 32 ? 32 : 64; }
inline constexpr int kPatchSumColumns = 32;

/// Returns p with `lines` rows of output pixels.
inline ConvPatch with_lines(ConvPatch p, int lines) {
  p.lines = lines;
  p.x_pixels = Divisor(((lines - 1) * p.stride + 3) * p.x.row());
  p.dy_pixels = Divisor(lines * p.dy.row());
  return p;
}

/// Returns the shared memory of a block [bytes]: for a patch, a chunk of ones, and the offsets of
/// the patch's pixels. p: sizes of the patch. columns: number of output channels of the block's
/// tile.
inline std::size_t patch_bytes(const ConvPatch& p, int columns) {
  const int chunks =
      (kPatchChannels * p.x_pixels.n + columns * (p.dy_pixels.n + 1)) / kChunkChannels + 1;
  return 16 * static_cast<std::size_t>(chunks) + 2 * sizeof(std::uint16_t) * kMaxPatchTerms;
}

/// Returns p with the largest possible number of output rows (`lines`). A patch must fit into
/// shared_bytes, the number must divide the image's rows, and the patch must have at least two
/// pixels, because a Divisor divides by 2 or more. lines = 0 if no number is possible. columns:
/// number of output channels.
inline ConvPatch conv_patch(const ConvPatch& p, int columns, std::size_t shared_bytes) {
  ConvPatch best = p;
  best.lines = 0;
  for (int lines = 1; lines <= p.dy.height && lines * p.dy.width <= kMaxPatchTerms; ++lines) {
    if (lines * p.dy.row() < 2) continue;
    const ConvPatch next = with_lines(p, lines);
    if (p.dy.height % lines == 0 && patch_bytes(next, patch_columns(columns)) <= shared_bytes)
      best = next;
  }
  return best;
}

}  // namespace cudp
