#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/for_each_pixel.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/embedding.hpp"

namespace cudp::inline CUDP_SIMT {

// Looks up word vectors. grid: numbers of a text, examples. block: any. smem: none.
__global__ inline void embed_kernel(device::Embed a) {
  const int columns = a.columns.n;
  const int numbers = a.places * columns;
  for_each_pixel(a.batch, numbers, [&](int e, int i) {
    const std::int64_t from = number_in_set(a.batch, a.examples, e);
    const int length = a.texts.lengths[from];
    if (i == 0) {
      a.own_length[e] = length;
      a.own_label[e] = a.labels[from];
    }
    const int t = quotient(i, a.columns);
    if (t >= length) return;
    const std::int64_t word = a.texts.tokens[from * a.places + t];
    const float* const table = word < a.rows ? a.weight : a.texts.vectors;
    a.y[static_cast<std::int64_t>(e) * numbers + i] =
        table != nullptr ? table[word * columns + (i - t * columns)] : 0.0f;
  });
}

/// The positions of a text in the order of their words, so that equal words are neighbours.
/// place(i): the i-th position in this order; word(i): the word there.
struct SortedText {
  const std::uint16_t* tokens;
  const std::uint16_t* order;

  __device__ __forceinline__ int place(int i) const { return order[i]; }
  __device__ __forceinline__ int word(int i) const { return tokens[order[i]]; }
};

// Computes the gradient of word vectors (EmbeddingGradient). grid: examples. block: 256. static
// smem: 32 bytes. Warp w processes those words whose first position in the sorted text is w modulo
// 8.
__global__ inline void embedding_gradient_kernel(device::EmbeddingGradient a) {
  constexpr int kThreads = 256;
  CUDP_SHARED(float, partial, [kThreads / kWarp]);
  const auto e = static_cast<int>(blockIdx.x);
  if (e >= live_examples(a.batch)) return;
  const float factor =
      a.sum != nullptr ? a.factors[static_cast<std::int64_t>(e) * a.factor_stride] : 0.0f;
  if (a.sum != nullptr && factor == 0.0f) return;
  const float scale = a.sum != nullptr ? factor * a.scale->inverse_grid : 0.0f;
  float* const own = a.gradients != nullptr ? a.gradients + e * a.stride : nullptr;
  if (own != nullptr) {
    const std::int64_t all = static_cast<std::int64_t>(a.rows) * a.columns;
    for (std::int64_t i = threadIdx.x; i < all; i += blockDim.x) own[i] = 0.0f;
    __syncthreads();
  }
  const std::int64_t first = number_in_set(a.batch, a.examples, e) * a.places;
  const SortedText text{a.texts.tokens + first, a.texts.order + first};
  const float* const dy = a.dy + static_cast<std::int64_t>(e) * a.places * a.columns;
  const int length = a.length[e];

  float square = 0.0f;
  const auto warps = static_cast<int>(blockDim.x) / kWarp;
  for (int i = static_cast<int>(threadIdx.x) / kWarp; i < length; i += warps) {
    const int word = text.word(i);
    if (word >= a.rows) break;
    if (i > 0 && text.word(i - 1) == word) continue;  // another warp adds it
    int end = i + 1;
    while (end < length && text.word(end) == word) ++end;
    for (int c = static_cast<int>(threadIdx.x) % kWarp; c < a.columns; c += kWarp) {
      float row = 0.0f;
      for (int j = i; j < end; ++j) row += dy[text.place(j) * a.columns + c];
      const std::int64_t at = static_cast<std::int64_t>(word) * a.columns + c;
      square += row * row;
      if (own != nullptr) own[at] = row;
      if (a.sum != nullptr)
        atomicAdd(a.sum + at,
                  static_cast<FixedPoint>(static_cast<long long>(saturated_product(scale, row))));
    }
  }
  if (a.parts == nullptr) return;
  square = block_sum(square, partial);
  if (threadIdx.x == 0) a.parts[e] = square;
}

}  // namespace cudp::inline CUDP_SIMT
