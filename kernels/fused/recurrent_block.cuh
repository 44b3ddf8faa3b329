#pragma once
// Code that all phases of the fused kernel for texts (recurrent_kernel.cuh) share: a block's shared
// memory, its group of texts, and the dense layer of the words.
#include <cstdint>

#include "kernels/fused/head.cuh"
#include "kernels/fused/recurrent_plan.hpp"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Shared memory of a block of the fused kernel for texts. The rows of each text (P::text_bytes()),
/// with the words and the states of its positions, come after this struct in shared memory. P: the
/// kernel's TextPlan for one network.
template <class P>
struct TextSpace {
  /// Gradients of the gates' pre-activations (deltas) for a piece of a text. In earlier phases: the
  /// low parts of word vectors, then the deltas that warps exchange at each step.
  alignas(kChunk) unsigned char deltas[P::kPiece * P::kDeltaRow];
  /// Word vectors of a piece of a text.
  alignas(kChunk) unsigned char vectors[P::kPiece * P::kVectorRow];
  /// W, the weights of the recurrent layer's inputs.
  alignas(kChunk) unsigned char inputs[P::kGateRows * P::kInputRow];
  /// Gradient of the outputs of the words' dense layer, before its activation.
  alignas(kChunk) unsigned char back[P::kWords * P::kBackRow];
  alignas(kChunk) float text[kMaxTexts][P::kText.size];
  Four parts[P::kWarps];  ///< [warp], sum of squares of each layer's gradient
  int length[kMaxTexts];
  alignas(16) PrefetchedCandidates candidates;
  AnyFunction functions[2];

  static_assert(P::kPiece * P::kVectorRow <= P::kPiece * P::kDeltaRow);
  static_assert(2 * P::kDirections * P::kExchange <= P::kPiece * P::kDeltaRow);
};

/// Returns the shared memory that a block needs [bytes] to process `texts` texts of up to `places`
/// positions at once. P: the kernel's TextPlan for one network.
template <class P>
constexpr std::size_t text_shared_bytes(int texts, int places) {
  return sizeof(TextSpace<P>) + static_cast<std::size_t>(texts) * P::text_bytes(places);
}

/// The four gates of a unit at one position of a text, in fp16. The backward pass replaces
/// them by the gradients of their pre-activations (deltas).
struct alignas(8) UnitGates {
  u32 word[2];
};

/// The group of `count` texts that a block processes at once, and the addresses of their numbers in
/// shared memory and in scratch memory. `places` is T, the number of positions that each text has
/// space for; P::kGateRows is the number of gates of both directions together.
template <class P>
struct Texts {
  Group group;
  int count, places;  ///< number of texts, and T
  int stride;         ///< distance between the rows of consecutive texts [bytes]
  unsigned char* first;
  unsigned char* scratch;

  __device__ __forceinline__ Texts(const FusedSum& a, TextSpace<P>& s, const Group& g)
      : group(g),
        count(a.texts.group),
        places(a.texts.places),
        stride(P::text_bytes(places)),
        first(reinterpret_cast<unsigned char*>(&s + 1)),
        scratch(a.texts.scratch +
                static_cast<std::int64_t>(blockIdx.x) * P::scratch_bytes(count, places)) {}

  /// Returns the address of row p of text e: input and states of the step at position p - 1.
  __device__ __forceinline__ unsigned char* row(int e, int p) const {
    return first + e * stride + p * P::kRow;
  }
  /// Returns the gates of text e, [T][kGateRows / 4], one element per position and unit.
  __device__ __forceinline__ UnitGates* gates(int e) const {
    return reinterpret_cast<UnitGates*>(scratch + e * places * P::kGateBytes);
  }
  /// Returns an LSTM's cell states c of one direction, [step][kStepThreads]. Each 32-bit word
  /// contains those of two texts in fp16.
  __device__ __forceinline__ u32* cells(int direction) const {
    return reinterpret_cast<u32*>(scratch + count * places * P::kGateBytes) +
           direction * places * P::kCells;
  }
  /// Returns, for text e, the sum over its positions of the deltas (gradients of the gates'
  /// pre-activations) of each gate, [kGateRows].
  __device__ __forceinline__ float* delta_sums(int e) const {
    return reinterpret_cast<float*>(cells(P::kDirections)) + e * P::kGateRows;
  }
};

/// Word vectors of a piece of a text, in registers between their load from global memory and their
/// store to shared memory. In shared memory a 1 follows each vector, as the input of the bias. Rows
/// past the text's end become 0. P: the kernel's TextPlan for one network.
template <class P>
struct PieceVectors {
  static constexpr int kFours = P::kColumns / 4;
  static constexpr int kEach = quotient_up(P::kPiece * kFours, P::kThreads);
  Four four[kEach];
  int rows;

  /// Loads the vectors of the words from position `first` on. number: index of the text in the data
  /// set. length: number of its words. a: arguments of the launch.
  __device__ __forceinline__ void fetch(const FusedSum& a, std::int64_t number, int first,
                                        int length) {
    const std::uint16_t* const tokens = a.texts.of.tokens + number * a.texts.places + first;
    rows = length - first;
    CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
      const int i = thread_number() + k * P::kThreads;
      const int row = i / kFours;
      four[k] = Four{};
      if (row < rows && row < P::kPiece)
        four[k] = load_four(a.texts.of.vectors + std::int64_t{tokens[row]} * P::kColumns +
                            i % kFours * 4);
    }
  }

  template <bool with_low>
  __device__ __forceinline__ void put(TextSpace<P>& s) const {
    CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
      const int i = thread_number() + k * P::kThreads;
      const int row = i / kFours;
      if (row >= P::kPiece) continue;
      const int at = row * P::kVectorRow + i % kFours * 8;
      const SplitHalves a = split_halves(four[k].v[0], four[k].v[1]);
      const SplitHalves b = split_halves(four[k].v[2], four[k].v[3]);
      *reinterpret_cast<UnitGates*>(s.vectors + at) = {{a.high, b.high}};
      if constexpr (with_low) *reinterpret_cast<UnitGates*>(s.deltas + at) = {{a.low, b.low}};
    }
    constexpr int kWordsLeft = P::kWordSteps * 8 - P::kColumns / 2;
    for (int i = thread_number(); i < P::kPiece * kWordsLeft; i += P::kThreads) {
      const int row = i / kWordsLeft, word = P::kColumns / 2 + i % kWordsLeft;
      const int at = row * P::kVectorRow + 4 * word;
      constexpr u32 kOne = 0x3c00;
      *reinterpret_cast<u32*>(s.vectors + at) = word == P::kColumns / 2 && row < rows ? kOne : 0u;
      if constexpr (with_low) *reinterpret_cast<u32*>(s.deltas + at) = 0u;
    }
  }
};

/// Prepares a block's shared memory: copies W, copies the activation functions, writes the 1 that
/// stands for the input of biases, and clears the rows of all texts. The rows are cleared because
/// the steps of longer texts also read rows that a short text does not write. P: the kernel's
/// TextPlan for one network. s: the block's shared memory.
template <class P>
__device__ __forceinline__ void begin_texts(const FusedSum& a, TextSpace<P>& s) {
  for (int i = thread_number(); i < P::kGateRows * P::kWords / 2; i += P::kThreads) {
    const int row = i / (P::kWords / 2), column = i % (P::kWords / 2) * 2;
    const int at = P::gate_parameter(row, column);
    const float* const w = a.parameters + at;
    *reinterpret_cast<u32*>(s.inputs + row * P::kInputRow + 2 * column) =
        at < 0 ? 0u : halves(w[0], w[1]);
  }
  auto* const rows = reinterpret_cast<Chunk*>(&s + 1);
  const int chunks = a.texts.group * P::text_bytes(a.texts.places) / kChunk;
  for (int i = thread_number(); i < chunks; i += P::kThreads) rows[i] = Chunk{};
  if (thread_number() < 2) s.functions[thread_number()] = AnyFunction(a.functions[thread_number()]);
  if (thread_number() < kMaxTexts) s.text[thread_number()][P::kText.one] = 1.0f;
}

/// Loads the lengths of the group's texts. Clears the states that no step of a text writes: the
/// states before its first step in each direction, and the states past its end. Matrix products
/// multiply these states by zeros, so they must not be NaN, which numbers of an earlier text might
/// be. P: the kernel's TextPlan for one network. t: the group's texts.
template <class P>
__device__ __forceinline__ void begin_group(const FusedSum& a, TextSpace<P>& s, const Texts<P>& t) {
  if (thread_number() < kMaxTexts) {
    const int e = thread_number();
    const bool is_text = e < t.count && t.group.has(e);
    s.length[e] = is_text ? int{a.texts.of.lengths[t.group.number(a, e)]} : 0;
  }
  __syncthreads();
  constexpr int kChunks = 2 * P::kStates / kChunk;
  for (int e = 0; e < t.count; ++e) {
    const int length = s.length[e], end = P::rows(length);
    for (int i = thread_number(); i < (end - length) * kChunks; i += P::kThreads) {
      const int row = i / kChunks == 0 ? 0 : length + i / kChunks;
      *reinterpret_cast<Chunk*>(t.row(e, row) + 2 * P::kWords + i % kChunks * kChunk) = Chunk{};
    }
  }
}

/// Computes the dense layer of the words for all texts of the group. Both operands are sums of two
/// fp16 numbers, so that the sums are nearly as accurate as in float32. This matters for an
/// activation with a kink, e.g. relu. P: the kernel's TextPlan for one network. s: the block's
/// shared memory. t: the group's texts.
template <class P>
__device__ __forceinline__ void dense_words(const FusedSum& a, TextSpace<P>& s, const Texts<P>& t) {
  constexpr int kColumnTiles = P::kWords / 8, kOwners = P::kWarps / kColumnTiles;
  const Lane l;
  const int warp = warp_number();
  const int o = warp % kColumnTiles * 8;
  u32 high[P::kWordSteps][2], low[P::kWordSteps][2];
  CUDP_UNROLL for (int k = 0; k < P::kWordSteps; ++k) {
    CUDP_UNROLL for (int half = 0; half < 2; ++half) {
      const int column = 16 * k + 8 * half + 2 * l.t;
      const float* const w = a.parameters + (o + l.g) * P::kColumns + column;
      const bool is_weight = column < P::kColumns;
      const SplitHalves parts = split_halves(is_weight ? w[0] : 0.0f, is_weight ? w[1] : 0.0f);
      high[k][half] = parts.high;
      low[k][half] = parts.low;
    }
  }
  const float* const bias = a.parameters + P::kWordBias + o + 2 * l.t;
  const float bias0 = bias[0], bias1 = bias[1];
  const AnyFunction f = s.functions[0];
  PieceVectors<P> vectors;
  vectors.fetch(a, t.group.number(a, 0), 0, s.length[0]);
  for (int e = 0, first = 0; e < t.count;) {
    const int length = s.length[e];
    __syncthreads();
    vectors.template put<true>(s);
    const int now = e, begin = first;
    first += P::kPiece;
    if (first >= length) {
      first = 0;
      ++e;
    }
    if (e < t.count) vectors.fetch(a, t.group.number(a, e), first, s.length[e]);
    __syncthreads();
    for (int tile = warp / kColumnTiles; tile < P::kPiece / 16 && begin + 16 * tile < length;
         tile += kOwners) {
      float c[4] = {bias0, bias1, bias0, bias1}, rest[4];
      clear(rest);
      const int at = (16 * tile + l.lane % 16) * P::kVectorRow + l.lane / 16 * kChunk;
      CUDP_UNROLL for (int k = 0; k < P::kWordSteps; ++k) {
        u32 x[4], x_low[4];
        ldmatrix_x4(x, s.vectors + at + 32 * k);
        ldmatrix_x4(x_low, s.deltas + at + 32 * k);
        multiply_add(c, x, high[k]);
        multiply_add(rest, x, low[k]);
        multiply_add(rest, x_low, high[k]);
      }
      unsigned char* const to = t.row(now, begin + 16 * tile + l.g + 1) + 2 * (o + 2 * l.t);
      *reinterpret_cast<u32*>(to) = halves(f.value(c[0] + rest[0]), f.value(c[1] + rest[1]));
      *reinterpret_cast<u32*>(to + 8 * P::kRow) =
          halves(f.value(c[2] + rest[2]), f.value(c[3] + rest[3]));
    }
  }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
