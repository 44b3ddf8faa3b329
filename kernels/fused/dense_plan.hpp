#pragma once
// Plan of dense_rows_kernel (dense_rows.cuh) for a network of dense layers, computed from the
// widths of the layers: the offsets of each layer's numbers, the number of examples that a block
// processes at once, and whether the network fits. The plan is an argument of the kernel at run
// time. So one compiled kernel serves all networks of dense layers that fit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// Largest number of parameters of a network of dense layers that a fused kernel (the whole network
/// in one launch) supports. Each thread block has a sum of that many 32-bit integers. The limit
/// keeps the sums of all blocks in the second-level cache: 132 of them are 42 MB, and an H200 has
/// 50; 108 of them are 35 MB, and an A100 has 40.
inline constexpr int kFusedParameters = 80'000;

/// Largest number of layers of a network of dense layers that a fused kernel supports. All layers
/// but the last are followed by an activation function.
inline constexpr int kMaxDenseLayers = 5;

/// Number of consecutive examples that a thread block is assigned at a time; blocks take turns. It
/// is more than 1 so that a small batch occupies fewer blocks, because each block has to read all
/// weights and write a whole sum.
inline constexpr int kTileExamples = 4;

/// Largest number of examples that a thread block processes at once: one per lane of a warp.
inline constexpr int kMaxTile = 32;
static_assert(kMaxTile % kTileExamples == 0);

/// Number of partial sums that make up one example's squared gradient norm of a layer: one per
/// warp.
inline constexpr int kDenseSquares = 16;

/// A dense layer. Its parameters, weight [out, in] then bias [out], start at index weight_at of the
/// network's parameters. A thread block has one row of floats in shared memory per example; `input`
/// is the offset in this row of the layer's input, which is followed by a 1 as the input of the
/// bias. `gradient` is the offset in this row of the loss's gradient with respect to the layer's
/// outputs before their activation.
struct DenseLayer {
  int in, out;
  int weight_at;
  int input, gradient;

  CUDP_HD constexpr int bias_at() const { return weight_at + out * in; }
  CUDP_HD constexpr int end() const { return bias_at() + out; }
};

/// Returns the number of parts into which the sums over a dense layer's inputs are split. A warp
/// computes 16 outputs; if there are too few outputs for 16 warps, several warps share the same
/// outputs and each sums a part of the inputs. The number depends on the size of the layer only.
/// in, out: numbers of the layer's inputs and outputs.
CUDP_HD constexpr int dense_parts(int in, int out) {
  const int blocks = (out + 15) / 16, steps = (in + 15) / 16;
  if (blocks > 8) return 1;
  const int each = (steps + 16 / blocks - 1) / (16 / blocks);
  return (steps + each - 1) / each;
}
/// Returns the space for an array of n floats in an example's row in shared memory: n rounded up to
/// a multiple of 16. Zeros fill the gap.
CUDP_HD constexpr int padded(int n) { return (n + 15) / 16 * 16; }

/// Layers of a network of dense layers, and the layout of its examples in shared memory. Each
/// example has a row of floats there: the inputs of all layers, then their gradients, then space
/// for the partial sums of a layer. Rows are an odd multiple of 16 floats apart, so that the same
/// 16 bytes of neighbouring rows are in different banks.
struct DenseShapes {
  int layers = 0;  ///< 0: no network of dense layers
  DenseLayer layer[kMaxDenseLayers]{};
  int partial = 0, row = 0;  ///< offset of the partial sums, and distance between rows [floats]
  int tile = 0;              ///< number of examples that a block processes at once; 0: none fit

  CUDP_HD constexpr const DenseLayer& last() const { return layer[layers - 1]; }
};

/// Returns the shared memory that dense_rows_kernel needs per example of a block [bytes]: the
/// example's row of activations and gradients, its loss, the random word that decides whether
/// importance sampling accepts it, and whether it is added. If transforms (coordinate-wise
/// clipping), also partial sums of its squared norms, and the factor of its gradient. d: sizes of
/// the network's layers.
constexpr std::size_t example_bytes(const DenseShapes& d, bool transforms) {
  const int more = transforms ? d.layers * kDenseSquares + 1 : 0;
  return static_cast<std::size_t>(d.row + 3 + more) * sizeof(float);
}

/// Returns the number of parameters of a network of dense layers. widths: number of features, of
/// outputs of each hidden layer, and of outputs.
constexpr std::int64_t dense_parameters(std::span<const int> widths) {
  std::int64_t n = 0;
  for (std::size_t i = 1; i < widths.size(); ++i)
    n += (static_cast<std::int64_t>(widths[i - 1]) + 1) * widths[i];
  return n;
}

/// Returns the layout of a network of dense layers for thread blocks with at most shared_bytes of
/// shared memory. widths: number of features, of outputs of each hidden layer, and of outputs.
/// transforms: whether clipping is coordinate-wise. The result's `tile` is 0 if the network has too
/// many layers or parameters, or if fewer than kTileExamples examples fit.
constexpr DenseShapes dense_plan(std::span<const int> widths, std::size_t shared_bytes,
                                 bool transforms) {
  DenseShapes d;
  if (widths.size() < 2 || widths.size() > kMaxDenseLayers + 1 ||
      dense_parameters(widths) > kFusedParameters)
    return d;
  int partial_sums = 0;
  for (int weight_at = 0; d.layers + 1 < static_cast<int>(widths.size()); ++d.layers) {
    DenseLayer& l = d.layer[d.layers];
    l.in = widths[static_cast<std::size_t>(d.layers)];
    l.out = widths[static_cast<std::size_t>(d.layers) + 1];
    l.weight_at = weight_at;
    l.input = d.row;
    d.row += padded(l.in + 1);
    weight_at = l.end();
    if (const int parts = dense_parts(l.in, l.out); parts > 1)
      partial_sums = std::max(partial_sums, parts * l.out);
  }
  for (int layer = 0; layer < d.layers; ++layer) {
    d.layer[layer].gradient = d.row;
    d.row += padded(d.layer[layer].out);
  }
  d.partial = d.row;
  d.row += padded(partial_sums);
  if (d.row % 32 == 0) d.row += 16;
  const std::size_t tile = shared_bytes / example_bytes(d, transforms);
  d.tile = tile < kTileExamples ? 0 : static_cast<int>(std::min(tile, std::size_t{kMaxTile}));
  return d;
}

}  // namespace cudp
