#pragma once
#include "kernels/common/copy_async.cuh"
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/loss_exponent.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/epilogue.cuh"
#include "kernels/products/chunk.cuh"
#include "kernels/products/half_tile.cuh"
#include "kernels/products/patch_product.hpp"
#include "kernels/products/tile.cuh"

namespace cudp::inline CUDP_SIMT {

// Packs weights. grid.x strides over packed words, grid.y is the weight matrix. smem: none.
__global__ inline void pack_weights_kernel(PackWeights a) {
  const PackedWeight& p = a.weights[blockIdx.y];
  const float* const weight = a.parameters + p.weight_at;
  float* const packed = a.packed + p.packed_at;
  if (p.keeps_order) {
    for_each_number(packed_floats(p), [&](std::int64_t i) { packed[i] = to_tf32(weight[i]); });
    return;
  }
  const int tile = patch_columns(p.columns);
  const int shift = tile == 64 ? 6 : 5;
  const int end = packed_floats(p);
  const auto threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < end; i += threads) {
    const int line = i >> (shift + 3);  // a tap of a step of a tile of columns
    const int group = i >> (shift + 2) & 1;
    const int step = line / kPatchTaps;
    const int tap = line - step * kPatchTaps;
    const int tile_of_columns = quotient(step, p.steps);
    const int column = (tile_of_columns << shift) + (i >> 2 & (tile - 1));
    const int channel =
        ((step - tile_of_columns * p.steps.n) * 2 + group) * kChunkChannels + 2 * (i & 3);
    const auto at = [&](int c) {
      const int t = c * kPatchTaps + tap;
      const bool inside = t < p.terms && column < p.columns;
      return inside ? weight[offset(p.weight.line, column) + offset(p.weight.term, t)] : 0.0f;
    };
    packed[i] = ScalarLanes::from_bits(halves(at(channel), at(channel + 1)));
  }
}

/// Part of a convolution's output that one block computes: kPatchPixels pixels x `columns`
/// channels. A warp computes 64 x 32 of these numbers.
template <int columns>
struct PixelTile : WarpTile<kPatchPixels, columns, kWarpPixels, 32> {
  static constexpr int kBlocks = 512 / PixelTile::kThreads;
};

/// A step of a convolution in shared memory, from which a block computes its part of the output:
/// kStepChannels input channels of the block's pixels, and their weights.
template <class T>
class PixelStep {
 public:
  /// p: arguments of the kernel. live: number of examples that the micro-batch really has (it may
  /// be fewer than the capacity). memory: shared memory of patch_product_bytes() bytes. All threads
  /// must call the constructor.
  __device__ __forceinline__ PixelStep(const PatchProduct& p, int live, Chunk* memory)
      : p_(p),
        x_(memory),
        weights_(memory + p.patch.x_chunks()),
        scales_(reinterpret_cast<float*>(weights_ + kStepChunks * T::kColumns)) {
    const PixelPatch& q = p.patch;
    const int parts = q.parts();
    const int group = static_cast<int>(blockIdx.x) / parts;
    line_ = (static_cast<int>(blockIdx.x) - group * parts) * q.lines;
    first_ = group * q.examples;
    examples_ = live - first_ < q.examples ? live - first_ : q.examples;
    for (int e = thread(); e < examples_; e += T::kThreads) {
      const bool scales = p.logit_gradients != nullptr;
      const u32 exponent = scales ? loss_exponent(p.logit_gradients, p.outputs, first_ + e) : 127;
      scales_[e] = ScalarLanes::from_bits(exponent << 23);
    }
    // Lane 8 i + r passes the address of row r of the i-th matrix of 8 x 8 numbers.
    CUDP_UNROLL for (int m = 0; m < kFragments; ++m) {
      const int row = T::warp_row() + 16 * m + T::lane() % 16;
      const Pixel at = pixel(row);
      const int chunk = at.example * q.x_pixels.n + at.y * q.x.row() + at.x + q.corner;
      const int second = T::lane() / 16 * q.examples * q.x_pixels.n;
      row_[m] = second + (at.inside ? chunk : q.corner);
    }
  }

  /// Returns whether this block has any example to compute. Blocks beyond the end of the batch have
  /// none.
  __device__ __forceinline__ bool any() const { return examples_ > 0; }
  __device__ __forceinline__ int count() const {
    return patch_steps(p_.patch.x.channels * kPatchTaps);
  }

  /// Copies the pixels and weights of step s (kStepChannels input channels). The threads must
  /// synchronise before and afterwards.
  __device__ __forceinline__ void copy(int s) const {
    constexpr int kWeights = kStepChunks * T::kColumns;
    const int tile = static_cast<int>(blockIdx.y) * count() + s;
    const int first_weight = 4 * kWeights * tile;
    const float* const weights = p_.packed + first_weight;
    for (int i = thread(); i < kWeights; i += T::kThreads) {
      const int four = 4 * i;
      copy_four_async(reinterpret_cast<float*>(weights_ + i), weights + four, true);
    }
    const PixelPatch& q = p_.patch;
    const int left = q.x.plane() - (line_ + q.corner) * q.x.row();  // rest of a plane
    const int channel = s * kStepChannels;
    const int x_first =
        first_ * q.x.size() + channel * q.x.plane() + (line_ + q.corner) * q.x.row();
    const int half = q.examples * q.x_pixels.n;
    CUDP_UNROLL_BY(1)
    for (int i = thread(); i < 2 * half; i += T::kThreads) {
      const int first = i < half ? 0 : kChunkChannels;
      const int in_half = i < half ? i : i - half;
      const int example = quotient(in_half, q.x_pixels);
      const int at = in_half - example * q.x_pixels.n;
      const bool inside = example < examples_ && at < left;
      const int from = inside ? example * q.x.size() + first * q.x.plane() + at : 0;
      const int channels = inside ? q.x.channels - channel - first : 0;
      x_[i] = load_chunk(p_.x + x_first + from, q.x.plane(), channels,
                         inside ? scales_[example] : 1.0f);
    }
    wait_for_copies();
  }

  /// Multiplies the pixels and weights of the step and adds the products to `sums`.
  __device__ __forceinline__ void multiply(Sums<T>& sums) const {
    if (T::warp_row() >= p_.patch.examples * p_.patch.image.n) return;  // no pixel of the warp
    const int second = T::lane() / 8 % 2;
    const int column = T::warp_column() + T::lane() / 16 * 8 + T::lane() % 8;
    const int second_chunks = second * T::kColumns;
    const Chunk* weights = weights_ + second_chunks + column;
    const int row = p_.patch.x.row();
    const Chunk* x = x_;
    CUDP_UNROLL_BY(1)
    for (int y = 0; y < 3; ++y, x += row) {
      CUDP_UNROLL for (int tap = 0; tap < 3; ++tap, weights += 2 * T::kColumns) {
        u32 b[2][4];
        CUDP_UNROLL for (int n = 0; n < 2; ++n) {
          const int columns = 16 * n;
          ldmatrix_x4(b[n], weights + columns);
        }
        CUDP_UNROLL for (int m = 0; m < kFragments; ++m) {
          u32 a[4];
          ldmatrix_x4(a, x + row_[m] + tap);
          CUDP_UNROLL for (int n = 0; n < 4; ++n) {
            const int pair = n % 2 * 2;
            const u32 of_column[2] = {b[n / 2][pair], b[n / 2][pair + 1]};
            add_product(sums.cell, m, n, a, of_column);
          }
        }
      }
    }
  }

  /// Adds the bias to each output pixel, applies p_.epilogue (an activation, its derivative or
  /// none) and writes the result. sums: the thread's sums of products.
  __device__ __forceinline__ void store(const Sums<T>& sums) const {
    const Planes& out = p_.out_planes;
    const Planes& of_y = p_.y_planes;
    float bias[T::kColumnsThread];
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      const int column = first_column<T>() + T::column(n);
      bias[n] = p_.bias != nullptr && column < out.channels ? p_.bias[column] : 0.0f;
    }
    store_finished(p_.epilogue, [&](const auto& finish) {
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        const Pixel at = pixel(T::row(m));
        if (!at.inside || at.example >= examples_ || line_ + at.y >= out.height) continue;
        const int example = first_ + at.example;
        const float back =
            ScalarLanes::from_bits((254u << 23) - ScalarLanes::bits(scales_[at.example]));
        const int out_first = example * out.size();
        float* const to = p_.out + out_first + out.at(0, line_ + at.y, at.x);
        const int y_at = example * of_y.size() + of_y.at(0, line_ + at.y, at.x);
        CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
          const int column = first_column<T>() + T::column(n);
          if (column >= out.channels) continue;
          const float v = finish(sums.cell[m][n] * back + bias[n],
                                 [&] { return p_.epilogue.y[y_at + column * of_y.plane()]; });
          const int plane = column * out.plane();
          to[plane] = v;
        }
      }
    });
  }

 private:
  static constexpr int kFragments = T::kRowsThread / 2;  // of 16 pixels

  /// Output pixel that a row of the block's matrix product stands for: its example, row and column
  /// among the block's pixels, and whether it is inside the output.
  struct Pixel {
    int example, y, x;
    bool inside;
  };
  __device__ __forceinline__ Pixel pixel(int row) const {
    const PixelPatch& q = p_.patch;
    const int example = quotient(row, q.image);
    const int in_image = row - example * q.image.n;
    const int y = quotient(in_image, q.line);
    return {example, y, in_image - y * q.line.n, example < q.examples};
  }
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }

  const PatchProduct& p_;
  Chunk* x_;
  Chunk* weights_;
  float* scales_;
  int line_, first_, examples_;
  int row_[kFragments];
};

// Computes a convolution. grid: groups of examples times parts of an output, column tiles. block:
// T::kThreads. dynamic smem: patch_product_bytes(). At least 512 threads fit on a multiprocessor
// (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) patch_product_kernel(PatchProduct p) {
  CUDP_DYNAMIC_SMEM(Chunk, memory);
  const PixelStep<T> step(p, live_examples(p.batch), memory);
  if (!step.any()) return;
  Sums<T> sums;
  sums.clear();
  const int count = step.count();
  CUDP_UNROLL_BY(1)
  for (int s = 0; s < count; ++s) {
    __syncthreads();  // the step before has been multiplied
    step.copy(s);
    __syncthreads();
    step.multiply(sums);
  }
  step.store(sums);
}

}  // namespace cudp::inline CUDP_SIMT
