#pragma once
// 3x3 convolution and its input gradient by tensor cores in fp16, from patches: a few channels of
// all pixels that a block needs are copied to shared memory, rounded to fp16, and serve all nine
// taps of the kernel. The weights are packed beforehand: rounded to fp16, in the order in which a
// block copies them.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/tiled_product.hpp"

namespace cudp {

/// Number of output pixels that a thread block computes. They are the rows of the block's matrix
/// product.
inline constexpr int kPatchPixels = 256;
/// Number of them that a warp computes.
inline constexpr int kWarpPixels = 64;
/// Number of input channels that are copied at a time (a step), two chunks of each pixel.
inline constexpr int kStepChannels = 16;
/// Number of chunks of weights that each output channel has in a step.
inline constexpr int kStepChunks = 2 * kPatchTaps;

/// Output pixels that one thread block computes: `lines` rows of each of `examples` examples.
/// `examples` is more than 1 only if `lines` is all rows of the output. lines = 0 means that the
/// convolution is not computed from patches.
struct PixelPatch {
  Planes x;
  std::int32_t height = 0;  ///< height of the output [pixels]
  std::int32_t width = 0;
  /// Row of x, counted from the corner of its border, that the upper left kernel position reads for
  /// the first output pixel. The column is the same number.
  std::int32_t corner = 0;
  std::int32_t lines = 0;
  std::int32_t examples = 1;

  // Set by with_lines().
  Divisor image = {};     ///< number of output pixels of an example in the block
  Divisor line = {};      ///< number of output pixels in a row
  Divisor x_pixels = {};  ///< number of pixels of x of an example in the block

  /// Returns the number of thread blocks among which the output of one example is divided.
  CUDP_HD int parts() const { return (height + lines - 1) / lines; }
  /// Returns the number of chunks of x in a step, for all examples: those of the first
  /// kChunkChannels channels, then the others.
  CUDP_HD int x_chunks() const { return 2 * examples * x_pixels.n; }
};

/// Returns p with `lines` output rows of `examples` examples.
inline PixelPatch with_lines(PixelPatch p, int lines, int examples) {
  p.lines = lines;
  p.examples = examples;
  p.image = Divisor(lines * p.width);
  p.line = Divisor(p.width);
  p.x_pixels = Divisor((lines + 2) * p.x.row());
  return p;
}

/// Returns the shared memory of a block [bytes]: for a step's chunks of x and of weights, and for a
/// scale per example. columns: number of output channels. p: sizes of the block's part of the
/// convolution.
inline std::size_t patch_product_bytes(const PixelPatch& p, int columns) {
  return 16 * static_cast<std::size_t>(p.x_chunks() + patch_columns(columns) * kStepChunks) +
         sizeof(float) * static_cast<std::size_t>(p.examples);
}

/// Returns p with the largest number of output pixels per block for which shared_bytes of shared
/// memory are enough. lines = 0 if there is none. columns: number of output channels.
inline PixelPatch pixel_patch(const PixelPatch& p, int columns, std::size_t shared_bytes) {
  PixelPatch none = p;
  none.lines = 0;
  if (p.corner < 0 || p.width < 2 || p.width > kPatchPixels) return none;
  for (int lines = std::min(p.height, kPatchPixels / p.width); lines > 0; --lines) {
    const int max_examples = lines < p.height ? 1 : kPatchPixels / (lines * p.width);
    for (int examples = max_examples; examples > 0; --examples) {
      const PixelPatch next = with_lines(p, lines, examples);
      if (patch_product_bytes(next, columns) <= shared_bytes) return next;
    }
  }
  return none;
}

/// Returns p with fewer output pixels per block, at least those of a warp, while a launch would
/// have fewer than blocks_at_once blocks. capacity: number of examples. columns: number of output
/// channels.
inline PixelPatch spread(PixelPatch p, int capacity, int columns, int blocks_at_once) {
  const int tiles = static_cast<int>(divide_up(columns, patch_columns(columns)));
  const auto blocks = [&] {
    return static_cast<int>(divide_up(capacity, p.examples)) * p.parts() * tiles;
  };
  while (blocks() < blocks_at_once && p.examples * p.lines * p.width > kWarpPixels &&
         p.examples * p.lines > 1)
    p = p.examples > 1 ? with_lines(p, p.lines, (p.examples + 1) / 2)
                       : with_lines(p, (p.lines + 1) / 2, 1);
  return p;
}

/// Returns the number of steps in which sums of `terms` products are computed: those of
/// kStepChannels input channels and all taps in each.
CUDP_HD int patch_steps(int terms) {
  constexpr int kTerms = kStepChannels * kPatchTaps;
  return (terms + kTerms - 1) / kTerms;
}

/// Copy of a layer's weights in the order in which a kernel reads them. For the kernel of
/// PatchProduct they are fp16, in the order in which a block copies them, [tiles of columns,
/// patch_steps(terms), taps, 2, columns of a tile, kChunkChannels], with zeros where there is no
/// weight. columns: output channels. terms: input channels times kernel taps. Other kernels read
/// the weights in their original order (keeps_order), rounded to TF32.
struct PackedWeight {
  /// Layout of the original weights. Its data pointer is null; the weights start at
  /// PackWeights::parameters + weight_at.
  Factor weight;
  std::int64_t weight_at;
  std::int32_t terms;
  std::int32_t columns;
  std::int64_t packed_at;  ///< offset in PackWeights::packed
  bool keeps_order = false;
  AnyDivisor steps = {};  ///< patch_steps(terms); only if !keeps_order
};
/// Makes the copies of all layers' weights (PackedWeight) in one launch.
struct PackWeights {
  const PackedWeight* weights;  ///< [count], in device memory
  std::int32_t count;
  std::int32_t max_floats;  ///< largest packed size of one of the weights [floats]
  const float* parameters;
  float* packed;
};
CUDP_HD int packed_floats(int terms, int columns) {
  const int tile = patch_columns(columns);
  return (columns + tile - 1) / tile * tile * patch_steps(terms) * kStepChunks * 4;
}

CUDP_HD int packed_floats(const PackedWeight& p) {
  return p.keeps_order ? p.terms * p.columns : packed_floats(p.terms, p.columns);
}

/// Forward pass of a 3x3 convolution that reads patches of the input, and weights packed by
/// PackWeights: out(i, j) = bias[j] + sum over t of x(i, t) * weight(t, j), and then `epilogue` is
/// applied. i is an output pixel, j an output channel, and t = 9 (input channel) + (kernel tap).
/// Products of 16 channels are added at a time, tap by tap.
struct PatchProduct {
  Batch batch;
  PixelPatch patch;
  const float* x;       ///< [capacity, patch.x]
  const float* packed;  ///< weights as packed by PackWeights
  const float* bias;    ///< [columns], bias of each output channel, or null
  float* out;           ///< [capacity, out_planes], written: the output
  Planes out_planes;
  Epilogue epilogue = {};
  Planes y_planes = {};  ///< layout of epilogue.y, [capacity, y_planes]
  /// Of an input gradient: [capacity, outputs], derivative of each example's loss by its logits. x
  /// is multiplied by the power of two of loss_exponent() before it is rounded to fp16, and the
  /// products by its inverse. Otherwise null.
  const float* logit_gradients = nullptr;
  std::int32_t outputs = 0;
};

inline void validate(const PackWeights& p) {
  expect(p.weights && p.parameters && p.packed && p.count > 0 && p.max_floats > 0,
         "packed weights: expected weights, parameters and an output");
}
inline LaunchShape launch_shape(const PackWeights& p) {
  LaunchShape shape = strided_shape(p.max_floats);
  shape.grid.y = static_cast<unsigned>(p.count);
  return shape;
}

inline void validate(const PatchProduct& p) {
  validate(p.batch);
  validate(p.epilogue);
  expect(p.epilogue.y == nullptr || p.y_planes.pixels() == p.out_planes.pixels(),
         "patch product: expected a function of its own output");
  expect(p.x != nullptr && p.packed != nullptr && p.out != nullptr,
         "patch product: expected pointers");
  expect((p.logit_gradients != nullptr) == (p.outputs > 0),
         "patch product: expected a number of derivatives by logits, or none");
  const PixelPatch& q = p.patch;
  expect(q.lines > 0 && q.examples > 0 && (q.examples == 1 || q.lines == q.height) &&
             q.examples * q.lines * q.width <= kPatchPixels,
         "patch product: expected lines of one example, or whole examples");
  expect(q.height == p.out_planes.height && q.width == p.out_planes.width,
         "patch product: expected patches of its own output");
  expect(q.corner >= 0 && q.corner + q.height + 2 <= q.x.height + 2 * q.x.border &&
             q.corner + q.width + 2 <= q.x.width + 2 * q.x.border,
         "patch product: expected taps within the planes and their borders");
}
inline LaunchShape launch_shape(const PatchProduct& p) {
  const int columns = patch_columns(p.out_planes.channels);
  const PixelPatch& q = p.patch;
  return {.grid = {divide_up(p.batch.capacity, q.examples) * static_cast<unsigned>(q.parts()),
                   divide_up(p.out_planes.channels, columns)},
          .block = {static_cast<unsigned>(4 * columns)},
          .shared_bytes = patch_product_bytes(q, columns)};
}

}  // namespace cudp
