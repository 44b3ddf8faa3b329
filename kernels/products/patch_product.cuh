#pragma once
#include "kernels/common/copy_async.cuh"
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/layers/epilogue.cuh"
#include "kernels/products/patch_product.hpp"
#include "kernels/products/tile.cuh"

namespace cudp::inline CUDP_SIMT {

// Packs weights. grid.x strides over packed numbers, grid.y is the weight matrix. smem: none.
__global__ inline void pack_weights_kernel(PackWeights a) {
  const PackedWeight& p = a.weights[blockIdx.y];
  const float* const weight = a.parameters + p.weight_at;
  float* const packed = a.packed + p.packed_at;
  if (p.keeps_order) {
    for_each_number(packed_floats(p), [&](std::int64_t i) { packed[i] = to_tf32(weight[i]); });
    return;
  }
  const int steps = p.steps.n;
  const int tile = patch_columns(p.columns);
  const int shift = tile == 64 ? 6 : 5;
  const int end = packed_floats(p);
  const auto threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < end; i += threads) {
    const int line = i / kStepPitch;
    const int in_step = i - line * kStepPitch;
    const int step = line >> shift;
    const int tile_of_columns = quotient(step, p.steps);
    const int column = (tile_of_columns << shift) + (line & (tile - 1));
    const int t = (step - tile_of_columns * steps) * kStepTerms + in_step;
    const bool inside = in_step < kStepTerms && t < p.terms && column < p.columns;
    packed[i] =
        inside ? to_tf32(weight[offset(p.weight.line, column) + offset(p.weight.term, t)]) : 0.0f;
  }
}

/// Part of a convolution's output that one block computes: kPatchPixels pixels x `columns`
/// channels. A warp computes 64 x 32 of these numbers.
template <int columns>
struct PixelTile : WarpTile<kPatchPixels, columns, 64, 32> {
  static constexpr int kBlocks = 512 / PixelTile::kThreads;
};

/// Double buffer in shared memory for a block that computes a part of a convolution. The products
/// are summed in steps of kStepChannels input channels; while one step's pixels and weights are
/// multiplied, those of the next step are copied.
template <class T>
class PixelSteps {
 public:
  /// Prepares the double buffer. Writes to terms[t] the offset of the first pixel of product t, for
  /// each of the kStepTerms products of a step (a product is one input channel and one position of
  /// the 3x3 kernel). The offset is in a step's part of x in shared memory [floats]. p: arguments
  /// of the kernel. live: number of examples that the micro-batch really has (it may be fewer than
  /// the capacity). memory: shared memory of patch_product_bytes() bytes. terms: shared memory for
  /// kStepTerms integers. All threads must call the constructor.
  __device__ __forceinline__ PixelSteps(const PatchProduct& p, int live, float* memory, int* terms)
      : p_(p),
        memory_(memory),
        copies_(reinterpret_cast<FourCopy*>(memory + 2 * step_floats(p.patch, T::kColumns))),
        terms_(terms) {
    const PixelPatch& q = p.patch;
    const int parts = q.parts();
    const int group = static_cast<int>(blockIdx.x) / parts;
    line_ = (static_cast<int>(blockIdx.x) - group * parts) * q.lines;
    first_ = group * q.examples;
    examples_ = live - first_ < q.examples ? live - first_ : q.examples;
    for (int t = thread(); t < kStepTerms; t += T::kThreads) {
      const int channel = t / kPatchTaps;
      const int tap = t - channel * kPatchTaps;
      terms[t] = channel * q.x_plane + tap / 3 * q.x_row + tap % 3 + q.corner;
    }
    const int left = q.x.plane() - (line_ + q.corner) * q.x.row();  // floats left in a plane
    for (int i = thread(); i < q.examples * q.x_image.n; i += T::kThreads) {
      const int example = quotient(i, q.x_image);
      const int four = i - example * q.x_image.n;
      const int y = quotient(four, q.x_fours);
      const int to = (example * (q.lines + 2) + y) * q.x_row + 4 * (four - y * q.x_fours.n);
      const bool inside = example < examples_ && 4 * four < left;
      copies_[i] = {to, inside ? example * q.x.size() + 4 * four : -4};
    }
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const Pixel at = pixel(m);
      const int number = (at.example * (q.lines + 2) + at.y) * q.x_row + at.x;
      row_[m] = at.inside ? number * static_cast<int>(sizeof(float)) : 0;
    }
    __syncthreads();
  }

  /// Returns whether this block has any example to compute. Blocks beyond the end of the batch have
  /// none.
  __device__ __forceinline__ bool any() const { return examples_ > 0; }
  __device__ __forceinline__ int count() const {
    return patch_steps(p_.patch.x.channels * kPatchTaps);
  }

  /// Starts to copy the pixels and weights of step s (kStepChannels input channels) to buffer
  /// `half` (0 or 1).
  __device__ __forceinline__ void copy(int half, int s) const {
    const PixelPatch& q = p_.patch;
    float* const to = step(half);
    const int channels = q.x.channels - s * kStepChannels;
    const int x_first =
        first_ * q.x.size() + s * kStepChannels * q.x.plane() + (line_ + q.corner) * q.x.row();
    const float* const x = p_.x + x_first;
    CUDP_UNROLL_BY(1)
    for (int i = T::lane(); i < q.examples * q.x_image.n; i += kWarp) {
      const FourCopy at = copies_[i];
      CUDP_UNROLL for (int k = 0; k < kStepChannels; k += T::kThreads / kWarp) {
        const int channel = k + T::warp();
        const int to_at = channel * q.x_plane + at.to;
        const int x_at = channel * q.x.plane() + at.from;
        copy_four_async(to + to_at, x + x_at, at.from >= 0 && channel < channels);
      }
    }
    constexpr int kWeights = T::kColumns * kStepPitch;
    const int tile = static_cast<int>(blockIdx.y) * count() + s;
    const int weight_first = tile * kWeights + 4 * thread();
    const int weight_to_first = kStepChannels * q.x_plane + 4 * thread();
    const float* const weight = p_.packed + weight_first;
    float* const weight_to = to + weight_to_first;
    CUDP_UNROLL for (int k = 0; k < kWeights; k += 4 * T::kThreads) {
      const bool whole = k + 4 * T::kThreads <= kWeights;
      if (whole || 4 * thread() < kWeights - k) copy_four_async(weight_to + k, weight + k, true);
    }
  }

  /// Multiplies the pixels and weights in buffer `half` (0 or 1) and adds the products to `sums`.
  __device__ __forceinline__ void multiply(int half, Sums<T>& sums) const {
    const int t = T::lane() % 4;
    const float* const x = step(half);
    const int weight_first =
        kStepChannels * p_.patch.x_plane + (T::warp_column() + T::lane() / 4) * kStepPitch + t;
    const float* const weight = x + weight_first;
    CUDP_UNROLL_BY(1)
    for (int k = 0; k < kStepTerms; k += 8) {
      const char* const x_at[2] = {reinterpret_cast<const char*>(x + terms_[k + t]),
                                   reinterpret_cast<const char*>(x + terms_[k + t + 4])};
      float b[T::kColumnsThread / 2][2];
      CUDP_UNROLL for (int n = 0; n < T::kColumnsThread / 2; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          b[n][i] = weight[8 * n * kStepPitch + k + 4 * i];
        }
      }
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; m += 2) {
        float a[4];
        CUDP_UNROLL for (int i = 0; i < 4; ++i) {
          a[i] = *reinterpret_cast<const float*>(x_at[i / 2] + row_[m + i % 2]);
        }
        CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; n += 2) {
          mma_tf32(&sums.cell[m][n], &sums.cell[m + 1][n], a, b[n / 2]);
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
        const Pixel at = pixel(m);
        if (!at.inside || at.example >= examples_ || line_ + at.y >= out.height) continue;
        const int example = first_ + at.example;
        const int out_at = example * out.size() + out.at(0, line_ + at.y, at.x);
        const int y_at = example * of_y.size() + of_y.at(0, line_ + at.y, at.x);
        CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
          const int column = first_column<T>() + T::column(n);
          if (column >= out.channels) continue;
          p_.out[out_at + column * out.plane()] = finish(sums.cell[m][n] + bias[n], [&] {
            return p_.epilogue.y[y_at + column * of_y.plane()];
          });
        }
      }
    });
  }

 private:
  /// Output pixel that a row of the block's matrix product stands for: its example, row and column
  /// among the block's pixels, and whether it is inside the output.
  struct Pixel {
    int example, y, x;
    bool inside;
  };
  __device__ __forceinline__ Pixel pixel(int m) const {
    const PixelPatch& q = p_.patch;
    const int row = T::row(m);
    const int example = quotient(row, q.image);
    const int in_image = row - example * q.image.n;
    const int y = quotient(in_image, q.line);
    return {example, y, in_image - y * q.line.n, example < q.examples};
  }
  __device__ __forceinline__ float* step(int half) const {
    return memory_ + half * step_floats(p_.patch, T::kColumns);
  }
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }

  const PatchProduct& p_;
  float* memory_;
  FourCopy* copies_;
  const int* terms_;
  int line_, first_, examples_;
  int row_[T::kRowsThread];  // in bytes, so that an address is one addition
};

// Computes a convolution. grid: groups of examples times parts of an output, column tiles. block:
// T::kThreads. dynamic smem: patch_product_bytes(). At least 512 threads fit on a multiprocessor
// (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) patch_product_kernel(PatchProduct p) {
  CUDP_DYNAMIC_SMEM(float, memory);
  CUDP_SHARED(int, terms, [kStepTerms]);
  const PixelSteps<T> steps(p, live_examples(p.batch), memory, terms);
  if (!steps.any()) return;
  Sums<T> sums;
  sums.clear();
  const int count = steps.count();
  steps.copy(0, 0);
  for (int s = 0, half = 0; s < count; ++s, half ^= 1) {
    wait_for_copies();
    __syncthreads();  // before it, all threads have finished reading the other half
    if (s + 1 < count) steps.copy(half ^ 1, s + 1);
    steps.multiply(half, sums);
  }
  steps.store(sums);
}

}  // namespace cudp::inline CUDP_SIMT
