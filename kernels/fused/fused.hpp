#pragma once
// Fused step of small networks (fused_kernel.cuh: with convolutions; dense_rows.cuh: dense layers
// only; recurrent_kernel.cuh: texts). One kernel computes each block's sum of clipped gradients
// directly from the data set. A second kernel adds the blocks' sums. No example's weight gradient
// is ever stored in device memory.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/fused/dense_plan.hpp"
#include "kernels/layers/embedding.hpp"
#include "kernels/layers/kinds.hpp"
#include "kernels/step/block_sums.hpp"

namespace cudp {

/// Number of threads per block of a fused kernel. The kernels for texts have 256
/// (TextPlan::kThreads).
inline constexpr unsigned kFusedThreads = 512;

/// Largest number of gradients that a thread block adds up in 32-bit integers without overflow:
/// each gradient adds at most kMaxUnits in magnitude to a sum.
inline constexpr int kFusedExamples = 252;
static_assert(2.0 * kFusedExamples * kMaxUnits <= 0x1p31);

static_assert(kFusedExamples % kTileExamples == 0);

/// What a launch of a fused kernel does for every example of its micro-batch:
///   clip    adds the example's clipped gradient to the sum;
///   accept  second stage of importance sampling: accepts or rejects the example, and adds an
///           accepted gradient, divided by its norm; stores the norm in both cases;
///   norms   writes the norm of the example's gradient;
///   forward writes the example's logits.
/// For clip and accept, FusedSum::examples lists the indices of the batch's examples. For norms and
/// forward, the micro-batch is consecutive examples of the data set, from index batch.first on.
enum class FusedTask { clip, accept, norms, forward };
CUDP_HD bool is_summed(FusedTask task) {
  return task == FusedTask::clip || task == FusedTask::accept;
}

/// Parameters and random bits for the second stage of importance sampling, in which a kernel
/// accepts or rejects each drawn example.
struct FusedAcceptance {
  const ImportanceRule* rule;  ///< parameters of the epoch, in device memory
  RandomStream stream;         ///< Stream::acceptance
  const std::uint64_t* step;   ///< number of the step; replaces stream.step
  std::int64_t first = 0;      ///< index of example 0's word in the stream
};

/// Texts of the data set, and the working memory of the fused kernel for recurrent networks.
struct FusedTexts {
  device::Texts of;                  ///< all texts; `tokens` is null if the examples are not texts
  std::int32_t places = 0;           ///< T, maximum number of words of a text
  std::int32_t group = 0;            ///< number of texts that a block processes at once, 1 to 8
  unsigned char* scratch = nullptr;  ///< [blocks, bytes], see TextPlan::scratch_bytes()
};

/// Arguments of a fused kernel, which runs a whole network in one launch. For the tasks clip and
/// accept it computes one array of integers per thread block, slabs[block]: the sum of the
/// contributions of the block's examples. The integers count multiples of the sum's grid, the power
/// of two to whose multiples gradients are rounded. The micro-batch is dealt to the blocks
/// round-robin, `stripe` consecutive examples at a time. A block without examples writes no sum.
/// The tasks norms and forward write no sums.
///
/// In the shapes, `data set` is the number of examples of the data set, `capacity` is
/// batch.capacity, and d is the number of parameters.
struct FusedSum {
  FusedTask task;
  /// For the tasks clip and accept, capacity <= fused_capacity(blocks, stripe).
  Batch batch;
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on, or null
  const std::uint8_t* bytes;      ///< [data set, features], or null
  const float* floats;            ///< [data set, features], or null
  CodedRows coded;                ///< rows in compact form, or null
  FusedTexts texts;               ///< texts, or none; one of bytes, floats, coded, texts is set
  const std::uint8_t* labels;     ///< [data set]
  const float* targets;           ///< [data set], or null; for dense_rows.cuh
  float huber;                    ///< threshold h of Loss::huber
  const float* class_weights;     ///< [classes], each in 0..1, or null: all are 1
  float scale;                    ///< a feature is scale * byte + shift
  float shift;
  const float* parameters;  ///< [d], flat in PyTorch's order
  /// Packed copy of the parameters for fused_kernel.cuh (packed.hpp), or null.
  const unsigned char* packed;
  Activate functions[kMaxDenseLayers - 1];  ///< activations of the layers except the last
  DenseShapes dense;                        ///< plan of dense_rows.cuh; empty for other kernels
  Loss loss;  ///< loss for dense_rows.cuh; networks with convolutions use cross-entropy
  ClippedGradient clip;
  Transform transform;  ///< arrays of [d], applied before clipping; null pointers: none
  FusedAcceptance accept;
  const SumScale* sum_scale;  ///< grid of the sum and clipping norm
  int stripe;                 ///< 1 for networks with convolutions, kTileExamples for those without
  int blocks;
  std::int32_t* slabs;  ///< [blocks, d]
  /// Loss of each example, [capacity], written by the tasks clip and accept; null: losses,
  /// squared_norms and factors are not written.
  float* losses;
  float* squared_norms;  ///< [capacity, layers], null if losses is null
  float* factors;        ///< [capacity, layers], null if losses is null
  /// Norm of each example's gradient, [data set]. The task accept reads it; accept and norms write
  /// it.
  float* norms;
  float* logits;  ///< [capacity, outputs], written
};

/// Adds the partial sums of all thread blocks (slabs [blocks, n]) to the batch's sum: fixed[j] +=
/// sum over blocks b of slabs[b, j], for j < n.
struct FusedReduce {
  BlockSums block_sums;
  std::int64_t n;  ///< d, number of parameters
  FixedPoint* fixed;
};

/// Returns the largest number of examples in a micro-batch for which no 32-bit sum of a thread
/// block can overflow: at most kFusedExamples for each block. stripe: examples are dealt to the
/// blocks in turn, this number of consecutive examples at a time. blocks: number of thread blocks
/// of the launch.
inline int fused_capacity(int blocks, int stripe) {
  return blocks * (kFusedExamples / stripe * stripe);
}

inline void validate(const FusedSum& a) {
  validate(a.batch);
  const DenseShapes& d = a.dense;
  const bool is_coded = a.coded.rows != nullptr;
  const bool has_texts = a.texts.of.tokens != nullptr;
  expect((a.bytes != nullptr) + (a.floats != nullptr) + is_coded + has_texts == 1,
         "fused: expected bytes, floats, codes or texts");
  expect(!has_texts || (a.texts.of.lengths && a.texts.of.vectors && a.texts.scratch &&
                        a.texts.places > 0 && a.texts.group > 0 && d.layers == 0),
         "fused: expected texts with lengths, vectors, scratch memory and sizes > 0");
  expect(!is_coded || (d.layers > 0 && a.coded.features == d.layer[0].in),
         "fused: expected codes only without convolutions, and of the network's features");
  expect(a.labels && a.parameters, "fused: expected pointers");
  expect(a.task == FusedTask::forward || has_target(a.loss) == (a.targets != nullptr),
         "fused: expected targets with a loss that has a target only");
  expect(a.targets == nullptr || (d.layers > 0 && d.last().out == 1),
         "fused: expected targets with one output");
  expect((a.losses == nullptr) == (a.squared_norms == nullptr) &&
             (a.losses == nullptr) == (a.factors == nullptr),
         "fused: expected all of the per-example results or none");
  expect(a.blocks > 0 && a.stripe > 0, "fused: expected blocks and stripe > 0");
  expect((a.packed != nullptr) == (d.layers == 0 && !has_texts),
         "fused: expected packed weights with convolutions, and with them alone");
  if (is_summed(a.task)) {
    expect(a.examples && a.slabs && a.sum_scale, "fused: expected pointers of a sum");
    expect(a.batch.capacity <= fused_capacity(a.blocks, a.stripe),
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
  expect(d.layers == 0 || (d.layers > 0 && d.layers <= kMaxDenseLayers && d.tile > 0 &&
                           d.tile <= kMaxTile && d.last().end() <= kFusedParameters),
         "fused: expected a plan of dense layers that fits");
}

inline void validate(const FusedReduce& a) {
  validate(a.block_sums);
  expect(a.block_sums.slabs && a.n > 0 && a.fixed, "fused reduce: expected pointers and n > 0");
}
/// Returns a launch shape with one thread per parameter. The thread adds up that parameter's
/// partial sums of all blocks.
inline LaunchShape launch_shape(const FusedReduce& a) { return strided_shape(a.n, 128); }

}  // namespace cudp
