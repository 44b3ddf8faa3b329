#pragma once
// Fused step of small networks (fused_kernel.cuh: with convolutions; dense_rows.cuh: dense layers
// only). One kernel computes each block's sum of clipped gradients directly from the data set. A
// second kernel adds the blocks' sums. No per-example value is ever stored in device memory.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/layers/embedding.hpp"
#include "kernels/layers/kinds.hpp"
#include "kernels/step/block_sums.hpp"

namespace cudp {

/// Threads of a block of a fused kernel, except those of texts (recurrent_plan.hpp).
inline constexpr unsigned kFusedThreads = 512;

/// Largest number of gradients that a block adds in 32-bit integers, in units of the sum's grid.
/// The numbers of each example are rounded independently, so an example adds the same units
/// whatever the other examples of its batch are, in any order and in any block.
inline constexpr int kFusedExamples = 252;
static_assert(2.0 * kFusedExamples * kMaxUnits <= 0x1p31);

/// Largest number of parameters of a network of dense layers. It keeps the blocks' sums in the
/// second-level cache (132 of them are 42 MB, of 50 on an H200; 108 are 35 MB, of 40 on an A100).
inline constexpr int kFusedParameters = 80'000;

/// Networks of dense layers: number of consecutive examples that blocks are assigned in turn. So a
/// small batch occupies few blocks, which each read all weights and write all their sums.
inline constexpr int kTileExamples = 4;

/// Largest number of examples that a block processes at once in a network of dense layers: one per
/// lane.
inline constexpr int kMaxTile = 32;
static_assert(kMaxTile % kTileExamples == 0 && kFusedExamples % kTileExamples == 0);

/// Networks of dense layers: partial sums of an example's squared norm, two layers times 16 warps.
inline constexpr int kDenseSquares = 32;

/// Shape of a linear model or of a network with one hidden layer, for dense_rows.cuh.
struct DenseShapes {
  int features;
  int hidden;  ///< 0 without a hidden layer
  int outputs;
  int tile;  ///< examples that a block processes at once, 1 to kMaxTile
};

inline std::int64_t parameters(const DenseShapes& d) {
  const auto layer = [](std::int64_t in, std::int64_t out) { return (in + 1) * out; };
  return d.hidden > 0 ? layer(d.features, d.hidden) + layer(d.hidden, d.outputs)
                      : layer(d.features, d.outputs);
}

/// Number of parts that a dense layer's sums over inputs are divided into, so that 16 warps, of 16
/// outputs each, have work. Depends on the layer only.
CUDP_HD int dense_parts(int in, int out) {
  const int blocks = (out + 15) / 16, steps = (in + 15) / 16;
  if (blocks > 8) return 1;
  const int each = (steps + 16 / blocks - 1) / (16 / blocks);
  return (steps + each - 1) / each;
}

/// Offsets of an example's arrays in shared memory [floats]: features, hidden layer (each followed
/// by a 1, the bias's input), the gradient of the loss with respect to the hidden layer's
/// pre-activations and to the outputs, then partial sums of a layer. Every array starts at a
/// multiple of 16; zeros fill the gap before the next. Rows are an odd multiple of 16 apart: 16
/// bytes of two neighbouring rows have different banks.
struct DenseRow {
  int hidden, gradient_hidden, gradient, partial, size;

  CUDP_HD explicit DenseRow(const DenseShapes& d)
      : hidden(rounded_up_to_16(d.features + 1)),
        gradient_hidden(hidden + (d.hidden > 0 ? rounded_up_to_16(d.hidden + 1) : 0)),
        gradient(gradient_hidden + rounded_up_to_16(d.hidden)),
        partial(gradient + rounded_up_to_16(d.outputs)),
        size(partial + rounded_up_to_16(d.hidden > 0 ? larger(partial_sums(d.features, d.hidden),
                                                              partial_sums(d.hidden, d.outputs))
                                                     : partial_sums(d.features, d.outputs))) {
    if (size % 32 == 0) size += 16;
  }

 private:
  static CUDP_HD int rounded_up_to_16(int n) { return (n + 15) / 16 * 16; }
  static CUDP_HD int larger(int a, int b) { return a > b ? a : b; }
  static CUDP_HD int partial_sums(int in, int out) {
    const int parts = dense_parts(in, out);
    return parts > 1 ? parts * out : 0;
  }
};

/// Shared memory of a block of dense_rows_kernel [bytes]. Per example: its arrays (DenseRow), its
/// loss, the random word that decides acceptance, and whether it is added. With coordinate-wise
/// clipping (transforms), also partial sums of its squared norm, and its factor.
CUDP_HD std::size_t fused_bytes(const DenseShapes& d, bool transforms) {
  const int more = transforms ? kDenseSquares + 1 : 0;
  return static_cast<std::size_t>(d.tile) * static_cast<std::size_t>(DenseRow(d).size + 3 + more) *
         sizeof(float);
}

/// Task that a launch does for every example of its micro-batch.
///   clip    adds its clipped gradient
///   accept  treats it as a candidate (contribution/importance.hpp): adds its direction if it is
///           accepted, and stores its norm
///   norms   writes the norm of its gradient
///   forward writes its logits
/// For clip and accept, FusedSum::examples lists the batch. For norms and forward, the micro-batch
/// is consecutive examples of the data set, from number batch.first on.
enum class FusedTask { clip, accept, norms, forward };
CUDP_HD bool is_summed(FusedTask task) {
  return task == FusedTask::clip || task == FusedTask::accept;
}

/// How the second stage of importance sampling accepts or rejects candidates.
struct FusedAcceptance {
  const ImportanceRule* rule;  ///< [1], in device memory
  RandomStream stream;         ///< Stream::acceptance
  const std::uint64_t* step;   ///< [1], replaces stream.step
  std::int64_t first = 0;      ///< index of example 0's word in the stream
};

/// Texts of the data set, for recurrent_kernel (recurrent_kernel.cuh).
struct FusedTexts {
  device::Texts of;                  ///< of the data set; without texts, `tokens` is null
  std::int32_t places = 0;           ///< T
  std::int32_t group = 0;            ///< texts that a block processes at once, 1 to 8
  unsigned char* scratch = nullptr;  ///< [blocks, bytes], see TextPlan::scratch_bytes()
};

/// Fused step: computes slabs[block] = sum of the contributions of a block's examples, in units of
/// the sum's grid. Blocks are assigned `turn` consecutive examples of the micro-batch in turn.
/// Blocks without examples, and tasks without a sum, write no slab.
struct FusedSum {
  FusedTask task;
  Batch batch;                    ///< capacity <= fused_capacity(blocks, turn) if summed
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on, or null
  const std::uint8_t* bytes;      ///< [data set, features], or null
  const float* floats;            ///< [data set, features], or null
  CodedRows coded;                ///< coded rows, or null
  FusedTexts texts;               ///< or none; exactly one of the four is set
  const std::uint8_t* labels;     ///< [data set]
  const float* targets;           ///< [data set], or null; for dense_rows.cuh
  float huber;                    ///< parameter of Loss::huber
  const float* class_weights;     ///< [classes], or null: all are 1; for dense_rows.cuh
  float scale;                    ///< a feature is scale * byte + shift
  float shift;
  const float* parameters;      ///< [d], flat in PyTorch's order
  const unsigned char* packed;  ///< the same for fused_kernel.cuh (packed.hpp), or null
  Activate functions[4];        ///< activations of the layers except the last
  DenseShapes dense;            ///< shape for dense_rows.cuh; fused_kernel.cuh leaves it 0
  Loss loss;  ///< loss for dense_rows.cuh; networks with convolutions use cross-entropy
  ClippedGradient clip;
  Transform transform;  ///< [d] each, applied before clipping; or null
  FusedAcceptance accept;
  const SumScale* sum_scale;  ///< [1], grid of the sum and clipping norm
  int turn;                   ///< 1 for networks with convolutions, kTileExamples for those without
  int blocks;
  std::int32_t* slabs;   ///< [blocks, d]
  float* losses;         ///< [capacity], only with a sum, or null
  float* squared_norms;  ///< [capacity, layers], null if losses is
  float* factors;        ///< [capacity, layers], null if losses is
  float* norms;          ///< [data set]: norms as last seen, updated by accept; written by norms
  float* logits;         ///< [capacity, outputs], written
};

/// Adds the partial sums of all blocks to the sum: fixed[j] += sum over blocks b of slabs[b, j].
struct FusedReduce {
  BlockSums block_sums;
  std::int64_t n;  ///< d
  FixedPoint* fixed;
};

/// Returns the largest number of examples in a micro-batch, so that no block's integers overflow.
/// turn: number of consecutive examples that blocks are assigned in turn.
inline int fused_capacity(int blocks, int turn) { return blocks * (kFusedExamples / turn * turn); }

inline void validate(const FusedSum& a) {
  validate(a.batch);
  const DenseShapes& d = a.dense;
  const bool is_coded = a.coded.rows != nullptr;
  const bool has_texts = a.texts.of.tokens != nullptr;
  expect((a.bytes != nullptr) + (a.floats != nullptr) + is_coded + has_texts == 1,
         "fused: expected bytes, floats, codes or texts");
  expect(!has_texts || (a.texts.of.lengths && a.texts.of.vectors && a.texts.scratch &&
                        a.texts.places > 0 && a.texts.group > 0 && d.features == 0),
         "fused: expected texts with lengths, vectors, scratch memory and sizes > 0");
  expect(!is_coded || (d.features > 0 && a.coded.features == d.features),
         "fused: expected codes only without convolutions, and of the network's features");
  expect(a.labels && a.parameters, "fused: expected pointers");
  expect(a.task == FusedTask::forward || has_target(a.loss) == (a.targets != nullptr),
         "fused: expected targets with a loss that has a target only");
  expect((a.targets == nullptr || d.outputs == 1) && (a.class_weights == nullptr || d.features > 0),
         "fused: expected targets with one output, and class weights without convolutions");
  expect((a.losses == nullptr) == (a.squared_norms == nullptr) &&
             (a.losses == nullptr) == (a.factors == nullptr),
         "fused: expected all of the per-example results or none");
  expect(a.blocks > 0 && a.turn > 0, "fused: expected blocks and turn > 0");
  expect((a.packed != nullptr) == (d.features == 0 && !has_texts),
         "fused: expected packed weights with convolutions, and with them alone");
  if (is_summed(a.task)) {
    expect(a.examples && a.slabs && a.sum_scale, "fused: expected pointers of a sum");
    expect(a.batch.capacity <= fused_capacity(a.blocks, a.turn),
           "fused: expected at most as many examples as 32-bit integers can sum");
  } else {
    expect(a.losses == nullptr, "fused: expected no per-example results without a sum");
  }
  expect((a.transform.mean == nullptr) == (a.transform.inverse == nullptr),
         "fused: expected both numbers of a transform or none");
  expect(
      a.transform.mean == nullptr || (a.task == FusedTask::clip && a.clip.kind == Clipping::flat),
      "fused: expected a transform with flat clipping only");
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
  validate(a.block_sums);
  expect(a.block_sums.slabs && a.n > 0 && a.fixed, "fused reduce: expected pointers and n > 0");
}
/// Launch shape with one thread per parameter, which adds up the numbers of all blocks.
inline LaunchShape launch_shape(const FusedReduce& a) { return strided_shape(a.n, 128); }

}  // namespace cudp
