#pragma once
// 3x3 convolution and its input gradient by tensor cores, from patches: a few channels of all
// pixels that a block needs are copied to shared memory unchanged and serve all nine taps of the
// kernel. The weights are packed beforehand: rounded to TF32, in the order in which a block copies
// them.
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
/// Number of input channels that are copied and multiplied at a time (a step).
inline constexpr int kStepChannels = 8;
/// Number of weights per output channel that are multiplied at a time (in a step): those of
/// kStepChannels input channels and nine positions of the 3x3 kernel.
inline constexpr int kStepTerms = kStepChannels * kPatchTaps;
/// Distance in floats between the weights of consecutive output channels in shared memory, so that
/// eight of them are in different banks.
inline constexpr int kStepPitch = kStepTerms + 4;

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

  // Distances in shared memory [floats]; set by with_lines().
  /// distance in shared memory between consecutive rows of x [floats]; 12 to 20 modulo 32
  std::int32_t x_row = 0;
  /// Distance in shared memory between consecutive channels of x [floats]. x_plane - 2 x_row is 12
  /// to 20 modulo 32, so that the numbers that a warp loads at once are either equal or in
  /// different banks.
  std::int32_t x_plane = 0;
  Divisor image = {};  ///< number of output pixels of an example in the block
  Divisor line = {};   ///< number of output pixels in a row
  /// number of groups of four floats that are copied per example and channel
  Divisor x_image = {};
  Divisor x_fours = {};  ///< number of groups of four floats in a row

  int x_lines() const { return lines + 2; }
  /// Returns the number of thread blocks among which the output of one example is divided.
  CUDP_HD int parts() const { return (height + lines - 1) / lines; }
};

/// Returns p with `lines` output rows of `examples` examples, and with the distances in shared
/// memory that follow from these numbers.
inline PixelPatch with_lines(PixelPatch p, int lines, int examples) {
  p.lines = lines;
  p.examples = examples;
  p.image = Divisor(lines * p.width);
  p.line = Divisor(p.width);
  p.x_image = Divisor(p.x_lines() * p.x.row() / 4);
  p.x_fours = Divisor(p.x.row() / 4);
  const auto spread = [](int n) { return n % 32 >= 12 && n % 32 <= 20; };
  p.x_row = p.x.row();
  while (!spread(p.x_row)) p.x_row += 4;
  p.x_plane = examples * p.x_lines() * p.x_row;
  while (!spread(p.x_plane - 2 * p.x_row)) p.x_plane += 4;
  return p;
}

/// Copy of four consecutive floats of an input channel to shared memory. to: offset in shared
/// memory. from: offset in global memory, relative to the block's first pixel; if it is negative,
/// four zeros are written instead.
struct alignas(8) FourCopy {
  std::int32_t to, from;
};

/// Returns the size in shared memory of one step, kStepChannels input channels and their weights
/// [floats]. columns: number of output channels. p: sizes of the block's part of the convolution.
CUDP_HD int step_floats(const PixelPatch& p, int columns) {
  return kStepChannels * p.x_plane + patch_columns(columns) * kStepPitch;
}
/// Returns the shared memory of a block [bytes]: for two steps, one that is multiplied and one that
/// is copied meanwhile, and for the list of copies (FourCopy) per channel. columns: number of
/// output channels. p: sizes of the block's part of the convolution.
inline std::size_t patch_product_bytes(const PixelPatch& p, int columns) {
  return 2 * sizeof(float) * static_cast<std::size_t>(step_floats(p, columns)) +
         sizeof(FourCopy) * static_cast<std::size_t>(p.examples * p.x_image.n);
}

/// Returns p with the largest number of output pixels per block for which shared_bytes of shared
/// memory are enough. lines = 0 if rows cannot be copied in parts of 16 bytes. columns: number of
/// output channels.
inline PixelPatch pixel_patch(const PixelPatch& p, int columns, std::size_t shared_bytes) {
  PixelPatch none = p;
  none.lines = 0;
  if (!copies_by_fours(p.x) || p.corner < 0 || p.width < 2 || p.width > kPatchPixels) return none;
  for (int lines = std::min(p.height, kPatchPixels / p.width); lines > 0; --lines) {
    const int max_examples = lines < p.height ? 1 : kPatchPixels / (lines * p.width);
    for (int examples = max_examples; examples > 0; --examples) {
      const PixelPatch next = with_lines(p, lines, examples);
      if (patch_product_bytes(next, columns) <= shared_bytes) return next;
    }
  }
  return none;
}

/// Returns the number of steps in which sums of `terms` products are computed, with kStepTerms
/// products (those of kStepChannels input channels) per step.
CUDP_HD int patch_steps(int terms) { return (terms + kStepTerms - 1) / kStepTerms; }

/// Copy of a layer's weights in the order in which a kernel reads them, rounded to TF32. For the
/// kernel of PatchProduct the order is that in which a block copies weights: [tiles of columns,
/// patch_steps(terms), columns of a tile, kStepPitch], with zeros where there is no weight.
/// columns: output channels. terms: input channels times kernel taps. Other kernels read the
/// weights in their original order (keeps_order).
struct PackedWeight {
  /// Layout of the original weights. Its data pointer is null; the weights start at
  /// PackWeights::parameters + weight_at.
  Factor weight;
  std::int64_t weight_at;
  std::int32_t terms;
  std::int32_t columns;
  std::int64_t packed_at;  ///< offset in PackWeights::packed
  /// Whether the weights are only rounded, and stay in their original order.
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
  return (columns + tile - 1) / tile * tile * patch_steps(terms) * kStepPitch;
}

CUDP_HD int packed_floats(const PackedWeight& p) {
  return p.keeps_order ? p.terms * p.columns : packed_floats(p.terms, p.columns);
}

/// Forward pass of a 3x3 convolution that reads patches of the input, and weights packed by
/// PackWeights: out(i, j) = bias[j] + sum over t of x(i, t) * weight(t, j), and then `epilogue` is
/// applied. i is an output pixel, j an output channel, and t = 9 (input channel) + (kernel tap).
/// The result equals, bit for bit, that of a device::Product with tensor cores.
struct PatchProduct {
  Batch batch;
  PixelPatch patch;
  const float* x;       ///< [capacity, patch.x], rounded to TF32
  const float* packed;  ///< weights as packed by PackWeights
  const float* bias;    ///< [columns], bias of each output channel, or null
  float* out;           ///< [capacity, out_planes], written: the output
  Planes out_planes;
  Epilogue epilogue = {};
  Planes y_planes = {};  ///< layout of epilogue.y, [capacity, y_planes]
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
  const PixelPatch& q = p.patch;
  expect(p.x != nullptr && p.packed != nullptr && p.out != nullptr && copies_by_fours(q.x),
         "patch product: expected pointers, and rows of more than one group of four");
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
