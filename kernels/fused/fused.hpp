#pragma once
// The fused step of small networks (fused_cnn.cuh: convolutions; fused_mlp.cuh: dense layers
// alone): one kernel takes the examples of a batch from the data set to a block's sum of clipped
// gradients, and one adds up the blocks. Nothing of a single example is ever in device memory.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/layers/kinds.hpp"
#include "kernels/step/block_sums.hpp"

namespace cudp {

/// A block adds at most this many gradients in 32-bit integers, units of the sum's grid. Every
/// number of an example is rounded by itself, so that it adds the same whatever is in the batch
/// with it, in whatever order and by whatever block.
inline constexpr int kFusedExamples = 252;
static_assert(2.0 * kFusedExamples * kMaxUnits <= 0x1p31);

/// Most parameters of a network of dense layers: the blocks' sums then stay in the second-level
/// cache (132 of them are 42 MB, of 50 on an H200; 108 are 35 MB, of 40 on an A100).
inline constexpr int kFusedParameters = 80'000;

/// Examples of a network of dense layers that a thread works on at once. Blocks take as many by
/// turns, so that a small batch reads the weights and writes slabs for few blocks.
inline constexpr int kTileExamples = 4;

/// Examples of a network of dense layers that a block takes at once at most: a lane each.
inline constexpr int kMaxTile = 28;
static_assert(kMaxTile % kTileExamples == 0 && kFusedExamples % kTileExamples == 0);

/// Squares of an example by two layers and the 8 warps of a block.
inline constexpr int kDenseSquares = 16;

/// A linear model, or a network of one hidden layer, for fused_mlp.cuh.
struct DenseShapes {
  int features;
  int hidden;  ///< 0 for none
  int outputs;
  int tile;  ///< examples that a block takes at once, 1 to kMaxTile
};

inline std::int64_t parameters(const DenseShapes& d) {
  const auto layer = [](std::int64_t in, std::int64_t out) { return (in + 1) * out; };
  return d.hidden > 0 ? layer(d.features, d.hidden) + layer(d.hidden, d.outputs)
                      : layer(d.features, d.outputs);
}

/// Places of an example's numbers in shared memory, in floats: features, hidden layer (each with a
/// 1 behind it, the bias's input), then the loss's gradient by what goes into the hidden layer, and
/// by the outputs. Every part begins at a multiple of 4, up to which the one before has zeros.
struct DenseRow {
  int hidden, gradient_hidden, gradient, size;

  CUDP_HD explicit DenseRow(const DenseShapes& d)
      : hidden(fours(d.features + 1)),
        gradient_hidden(hidden + (d.hidden > 0 ? fours(d.hidden + 1) : 0)),
        gradient(gradient_hidden + fours(d.hidden)),
        size(gradient + fours(d.outputs)) {}
  static CUDP_HD int fours(int n) { return (n + 3) / 4 * 4; }
};

/// Shared memory of a block: a row an example, its loss, its acceptance word and whether it adds;
/// where gradients are transformed, also its squares by layer and warp, and what it is scaled by.
CUDP_HD std::size_t fused_bytes(const DenseShapes& d, bool transforms) {
  const int more = transforms ? kDenseSquares + 1 : 0;
  return static_cast<std::size_t>(d.tile) * static_cast<std::size_t>(DenseRow(d).size + 3 + more) *
         sizeof(float);
}

/// What a launch does with every example of its micro-batch.
///   clip    its clipped gradient is added
///   accept  it is a candidate (contribution/importance.hpp): where it is accepted, its direction
///           is added, and its norm is kept
///   norms   its gradient's norm is written
///   forward its logits are written
/// The examples of the first two are listed; the others' are numbers batch.first, ... of the data
/// set, as many as there are.
enum class FusedTask { clip, accept, norms, forward };
CUDP_HD bool is_summed(FusedTask task) {
  return task == FusedTask::clip || task == FusedTask::accept;
}

/// Who is accepted, by numbers in device memory.
struct FusedAcceptance {
  const ImportanceRule* rule;  ///< [1]
  RandomStream stream;         ///< Stream::acceptance
  const std::uint64_t* step;   ///< [1], read in place of stream.step
  std::int64_t first = 0;      ///< the word of example 0
};

/// slabs[block] = sum over the block's examples of what they add, in units; blocks take `turn`
/// examples of the micro-batch by turns. Blocks without examples write nothing. Tasks without a sum
/// write no slabs.
struct FusedSum {
  FusedTask task;
  Batch batch;                    ///< capacity <= fused_capacity(blocks, turn) where it is summed
  const std::uint32_t* examples;  ///< numbers in the data set, from batch.first on, or null
  const std::uint8_t* bytes;      ///< [data set, features], or null
  const float* floats;            ///< likewise
  CodedRows coded;                ///< without convolutions; one of the three is there
  const std::uint8_t* labels;     ///< [data set]
  float scale;                    ///< a feature is scale * byte + shift
  float shift;
  const float* parameters;  ///< [d], flat in PyTorch's order
  Activate functions[3];    ///< behind each layer but the last
  DenseShapes dense;        ///< of fused_mlp.cuh; what it does not use is 0
  Loss loss;                ///< likewise; networks with convolutions have cross-entropy
  ClippedGradient clip;
  Transform transform;  ///< [d] each, of gradients before they are clipped; of a kernel for that
  FusedAcceptance accept;
  const SumScale* sum_scale;  ///< [1], of a sum: its grid, and the clipping norm
  int turn;                   ///< 1 for networks with convolutions, kTileExamples for those without
  int blocks;
  std::int32_t* slabs;   ///< [blocks, d]
  float* losses;         ///< [capacity] of a sum, or null
  float* squared_norms;  ///< [capacity, layers], or null with losses
  float* factors;        ///< [capacity, layers], likewise
  float* norms;          ///< [data set]: candidates' as last seen, brought up to date; or written
  float* logits;         ///< [capacity, outputs], written
};

/// fixed[j] += sum of the blocks' slabs.
struct FusedReduce {
  BlockSums left;
  std::int64_t n;  ///< d
  FixedPoint* fixed;
};

/// Examples of a micro-batch whose sums the blocks' integers hold.
inline int fused_capacity(int blocks, int turn) { return blocks * (kFusedExamples / turn * turn); }

inline void validate(const FusedSum& a) {
  validate(a.batch);
  const DenseShapes& d = a.dense;
  const bool is_coded = a.coded.rows != nullptr;
  expect((a.bytes != nullptr) + (a.floats != nullptr) + is_coded == 1,
         "fused: expected bytes, floats or codes");
  expect(!is_coded || (d.features > 0 && a.coded.features == d.features),
         "fused: expected codes of a network without convolutions, and of its features");
  expect(a.labels && a.parameters, "fused: expected pointers");
  expect((a.losses == nullptr) == (a.squared_norms == nullptr) &&
             (a.losses == nullptr) == (a.factors == nullptr),
         "fused: expected all of the per-example results or none");
  expect(a.blocks > 0 && a.turn > 0, "fused: expected blocks and turn > 0");
  if (is_summed(a.task)) {
    expect(a.examples && a.slabs && a.sum_scale, "fused: expected pointers of a sum");
    expect(a.batch.capacity <= fused_capacity(a.blocks, a.turn),
           "fused: expected no more examples than the blocks' integers hold");
  } else {
    expect(a.losses == nullptr, "fused: expected no per-example results without a sum");
  }
  expect((a.transform.mean == nullptr) == (a.transform.inverse == nullptr),
         "fused: expected both numbers of a transform or none");
  expect(
      a.transform.mean == nullptr || (a.task == FusedTask::clip && a.clip.kind == Clipping::flat),
      "fused: expected a transform of clipped gradients alone, by one norm");
  switch (a.task) {
    case FusedTask::clip:
      expect(a.clip.stability > 0, "fused: expected stability > 0");
      break;
    case FusedTask::accept:
      expect(a.accept.rule && a.accept.step && a.norms, "fused: expected a rule, a step and norms");
      break;
    case FusedTask::norms:
      expect(a.norms != nullptr, "fused: expected norms");
      break;
    case FusedTask::forward:
      expect(a.logits != nullptr, "fused: expected logits");
      break;
  }
  expect(d.features == 0 || (d.features > 0 && d.hidden >= 0 && d.outputs > 0 && d.tile > 0 &&
                             d.tile <= kMaxTile && parameters(d) <= kFusedParameters),
         "fused: expected shapes > 0, a tile and no more parameters than slabs may have");
}

inline void validate(const FusedReduce& a) {
  validate(a.left);
  expect(a.left.slabs && a.n > 0 && a.fixed, "fused reduce: expected pointers and n > 0");
}
/// A thread a number: 26,010 of them read some 132 slabs each.
inline LaunchShape launch_shape(const FusedReduce& a) { return strided_shape(a.n, 128); }

}  // namespace cudp
