#pragma once
// Plan of dense_rows_kernel (dense_rows.cuh) for a network of dense layers, from their widths:
// where each layer's numbers are, how many examples a block processes at once, and whether the
// network fits. Everything is a run-time value of one kernel, so any network of the kind has it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// Largest number of parameters of a network of dense layers. It keeps the blocks' sums in the
/// second-level cache (132 of them are 42 MB, of 50 on an H200; 108 are 35 MB, of 40 on an A100).
inline constexpr int kFusedParameters = 80'000;

/// Largest number of dense layers of such a network, of which all but the last have a function.
inline constexpr int kMaxDenseLayers = 5;

/// Number of consecutive examples that a block is assigned before the next block (round-robin). So
/// a small batch occupies few blocks, which each read all weights and write all their sums.
inline constexpr int kTileExamples = 4;

/// Largest number of examples that a block processes at once: one per lane.
inline constexpr int kMaxTile = 32;
static_assert(kMaxTile % kTileExamples == 0);

/// Number of partial sums of a layer's squared norm for one example, one per warp.
inline constexpr int kDenseSquares = 16;

/// A dense layer: weight [out, in], then bias [out], from index weight_at of the parameters on. Its
/// input (followed by a 1, the bias's input) and the gradient of the loss with respect to its
/// outputs, before their function, are arrays of an example: offsets in its row [floats].
struct DenseLayer {
  int in, out;
  int weight_at;
  int input, gradient;

  CUDP_HD constexpr int bias_at() const { return weight_at + out * in; }
  CUDP_HD constexpr int end() const { return bias_at() + out; }
};

/// Number of parts that a dense layer's sums over inputs are divided into, so that 16 warps, of 16
/// outputs each, have work. Depends on the layer only.
CUDP_HD constexpr int dense_parts(int in, int out) {
  const int blocks = (out + 15) / 16, steps = (in + 15) / 16;
  if (blocks > 8) return 1;
  const int each = (steps + 16 / blocks - 1) / (16 / blocks);
  return (steps + each - 1) / each;
}
/// Length of an array in an example's row; zeros fill the gap before the next array.
CUDP_HD constexpr int padded(int n) { return (n + 15) / 16 * 16; }

/// Layers of a network of dense layers, and their layout in shared memory. An example's row there
/// has the inputs of all layers, their gradients, then space for partial sums of a layer. Rows are
/// an odd multiple of 16 apart: 16 bytes of two neighbouring rows have different banks.
struct DenseShapes {
  int layers = 0;  ///< 0: no network of dense layers
  DenseLayer layer[kMaxDenseLayers]{};
  int partial = 0, row = 0;  ///< offset of the partial sums, and distance between rows [floats]
  int tile = 0;  ///< examples that a block processes at once, to kMaxTile; 0: does not fit

  CUDP_HD constexpr const DenseLayer& last() const { return layer[layers - 1]; }
};

/// Shared memory of a block of dense_rows_kernel for one example [bytes]: its row, its loss, the
/// random word that decides acceptance, and whether it is added. With coordinate-wise clipping
/// (transforms), also partial sums of its squared norms, and its factor.
constexpr std::size_t example_bytes(const DenseShapes& d, bool transforms) {
  const int more = transforms ? d.layers * kDenseSquares + 1 : 0;
  return static_cast<std::size_t>(d.row + 3 + more) * sizeof(float);
}

/// Number of parameters of dense layers with these widths: features, hidden layers, outputs.
constexpr std::int64_t dense_parameters(std::span<const int> widths) {
  std::int64_t n = 0;
  for (std::size_t i = 1; i < widths.size(); ++i)
    n += (static_cast<std::int64_t>(widths[i - 1]) + 1) * widths[i];
  return n;
}

/// Returns the plan of a network with these widths for blocks with at most shared_bytes of shared
/// memory. Its `tile` is 0 if the network has too many layers or parameters, or if fewer than
/// kTileExamples examples fit.
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
