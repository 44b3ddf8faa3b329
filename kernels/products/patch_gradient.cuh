#pragma once
#include "kernels/common/copy_async.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/tiled_product.cuh"

namespace cudp::inline CUDP_SIMT {

/// Tile of the weight gradient of a 3x3 convolution: one block computes kPatchRows x `columns`
/// numbers, each of its warps 48 x `warp_columns` of them. Every number is summed in the same order
/// as in the general kernel's tile (TensorTile).
template <int columns, int warp_columns>
struct PatchTile : WarpTile<kPatchRows, columns, 48, warp_columns> {
  // Number of blocks that must fit on a multiprocessor (__launch_bounds__): 384 threads.
  static constexpr int kBlocks = PatchTile::kThreads <= 192 ? 2 : 1;
};

/// Offsets in shared memory of one output pixel's numbers: of the input x at the upper left kernel
/// position, and of dy, the gradient of the output.
struct alignas(8) PatchTerm {
  int x, dy;
};

/// Double buffer in shared memory for a block that computes a convolution's weight gradient. While
/// one patch (the rows of x and dy for a few rows of output pixels) is multiplied, the next one is
/// copied.
template <class T>
class Patches {
 public:
  /// Prepares the double buffer, and computes for each output pixel of a patch the offsets of its
  /// numbers in the patch's x and dy. They may be read after the next barrier. g: arguments of the
  /// kernel. memory: shared memory of patch_bytes() bytes, for two patches. terms: shared memory
  /// for the offsets, kMaxPatchTerms elements.
  __device__ __forceinline__ Patches(const WeightGradient& g, float* memory, PatchTerm* terms)
      : g_(g), memory_(memory), terms_(terms) {
    const ConvPatch& p = g.patch;
    for (int t = thread(); t < p.lines * p.dy.width; t += T::kThreads) {
      const int y = t / p.dy.width;
      const int x = t - y * p.dy.width;
      terms[t] = {(y * p.x_row + x) * p.stride, y * p.dy.row() + x + p.dy.border};
    }
    CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
      const int channel = T::row(m) / kPatchTaps;
      const int tap = T::row(m) - channel * kPatchTaps;
      row_[m] = channel * p.x_plane + tap / 3 * p.x_row + tap % 3 + p.corner;
    }
  }

  /// Starts to copy one patch to buffer `half` (0 or 1): the parts of x and dy of example e for the
  /// g_.patch.lines output rows from row number `line` on.
  __device__ __forceinline__ void copy(int half, int e, int line) const {
    const ConvPatch& p = g_.patch;
    float* const to = patch(half);
    const int first = static_cast<int>(blockIdx.x) * kPatchChannels;
    const int x_first =
        e * p.x.size() + first * p.x.plane() + (line * p.stride + p.corner) * p.x.row();
    const float* const x = g_.x.data + x_first;
    CUDP_UNROLL_BY(1)  // the sums occupy the registers, so no unrolling
    for (int i = thread(); i < kPatchChannels * p.x_lines.n * p.x_fours.n; i += T::kThreads) {
      const int row = quotient(i, p.x_fours);
      const int channel = quotient(row, p.x_lines);
      const int y = row - channel * p.x_lines.n;
      const int at = 4 * (i - row * p.x_fours.n);
      const int to_at = channel * p.x_plane + y * p.x_row + at;
      const int x_at = channel * p.x.plane() + y * p.x.row() + at;
      copy_four_async(to + to_at, x + x_at, first + channel < p.x.channels);
    }
    const int dy_first =
        e * p.dy.size() + first_column<T>() * p.dy.plane() + (line + p.dy.border) * p.dy.row();
    const float* const dy = g_.dy.data + dy_first;
    CUDP_UNROLL_BY(1)
    for (int i = thread(); i < T::kColumns * p.dy_fours.n; i += T::kThreads) {
      const int column = quotient(i, p.dy_fours);
      const int at = 4 * (i - column * p.dy_fours.n);
      const int to_at = kPatchChannels * p.x_plane + column * p.dy_plane + at;
      const int dy_at = column * p.dy.plane() + at;
      copy_four_async(to + to_at, dy + dy_at, first_column<T>() + column < p.dy.channels);
    }
  }

  /// Multiplies x and dy of the patch in buffer `half` (0 or 1) and adds the products to `sums`,
  /// the gradient of the weights. Adds dy to the column sums, the gradient of the bias.
  __device__ __forceinline__ void multiply(int half, Sums<T>& sums) const {
    const ConvPatch& p = g_.patch;
    const int g = T::lane() / 4;
    const float* const x = patch(half);
    const int dy_first = kPatchChannels * p.x_plane + (T::warp_column() + g) * p.dy_plane;
    const float* const dy = x + dy_first;
    const int terms = p.lines * p.dy.width;
    CUDP_UNROLL_BY(1)
    for (int k = 0; k < terms; k += 8) {
      const PatchTerm at[2] = {terms_[k + T::lane() % 4], terms_[k + T::lane() % 4 + 4]};
      const float* const x_at[2] = {x + at[0].x, x + at[1].x};  // an address below is one addition
      const float* const dy_at[2] = {dy + at[0].dy, dy + at[1].dy};
      float a[T::kRowsThread / 2][4];
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; m += 2) {
        CUDP_UNROLL for (int i = 0; i < 4; ++i) { a[m / 2][i] = x_at[i / 2][row_[m + i % 2]]; }
      }
      const auto load_b = [&](int n, float(&b)[2]) {
        const int column = 4 * n * p.dy_plane;
        CUDP_UNROLL for (int i = 0; i < 2; ++i) { b[i] = dy_at[i][column]; }
      };
      CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; n += 2) {
        float b[2];
        load_b(n, b);
        CUDP_UNROLL for (int m = 0; m < T::kRowsThread; m += 2) {
          mma_tf32(&sums.cell[m][n], &sums.cell[m + 1][n], a[m / 2], b);
        }
      }
      if (blockIdx.x != 0 || T::warp_row() != 0) continue;
      CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; n += 2) {
        float b[2];
        load_b(n, b);
        add_columns(b, &sums.column[n]);
      }
    }
  }

 private:
  __device__ __forceinline__ float* patch(int half) const {
    const int at = half * g_.patch.size;
    return memory_ + at;
  }
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }

  const WeightGradient& g_;
  float* memory_;
  const PatchTerm* terms_;
  int row_[T::kRowsThread];
};

/// Computes this block's tile of the weight gradients of examples first .. end - 1, except those
/// for which skip(e) is true. Adds up the products of one example after the other in `sums`, and
/// calls after(e) when the products of example e are complete. The order in which an example's
/// products are added does not depend on other examples. While one patch (a few rows of output
/// pixels) is multiplied, the next one is copied. All threads must call the function. g: arguments
/// of the kernel. patches: the double buffer, constructed from g. Skip, After: types of the
/// functions skip() and after().
template <class T, class Skip, class After>
__device__ __forceinline__ void add_patches(const WeightGradient& g, Patches<T>& patches, int first,
                                            int end, const Skip& skip, Sums<T>& sums,
                                            const After& after) {
  const auto next_example = [&](int e) {
    while (e < end && skip(e)) ++e;
    return e;
  };
  int e = next_example(first);
  if (e < end) patches.copy(0, e, 0);
  for (int line = 0, half = 0; e < end; half ^= 1) {
    wait_for_copies();
    __syncthreads();  // before it, all threads have finished reading the other half
    const int now = e;
    line += g.patch.lines;
    if (line == g.patch.dy.height) {
      line = 0;
      e = next_example(e + 1);
    }
    if (e < end) patches.copy(half ^ 1, e, line);
    patches.multiply(half, sums);
    if (line == 0) after(now);
  }
}

/// Computes this block's tile of the weight gradient of example e. All threads must call it. g,
/// memory, terms: arguments of the constructor of Patches. sums: result, the thread's numbers of
/// the tile.
template <class T>
__device__ __forceinline__ void multiply_patches(const WeightGradient& g, int e, float* memory,
                                                 PatchTerm* terms, Sums<T>& sums) {
  sums.clear();
  Patches<T> patches(g, memory, terms);
  add_patches<T>(
      g, patches, e, e + 1, [](int) { return false; }, sums, [](int) {});
}

// Computes squared norms of gradients. grid: tiles of kPatchRows rows, column tiles, examples.
// block: T::kThreads. dynamic smem: patch_bytes(). At least 384 threads fit on a multiprocessor
// (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_norm_kernel(WeightGradientNorm a) {
  CUDP_DYNAMIC_SMEM(float, memory);
  CUDP_SHARED(PatchTerm, terms, [kMaxPatchTerms]);
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  const int e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  Sums<T> sums;
  multiply_patches(a.gradient, e, memory, terms, sums);
  store_norm<T>(a, sums, partial);
}

// Adds gradients. grid: tiles of kPatchRows rows, column tiles, groups of examples_per_block
// examples. block: T::kThreads. dynamic smem: patch_bytes(). At least 384 threads fit on a
// multiprocessor (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_sum_kernel(WeightGradientSum a) {
  CUDP_DYNAMIC_SMEM(float, memory);
  CUDP_SHARED(PatchTerm, terms, [kMaxPatchTerms]);
  const ExampleGroup group(a);
  if (group.first >= group.end) return;
  Sums<T> one;
  UnitSums<T> units;
  one.clear();
  units.clear();
  Patches<T> patches(a.gradient, memory, terms);
  add_patches<T>(
      a.gradient, patches, group.first, group.end,
      [&](int e) { return group.factor(a, e) == 0.0f; }, one,
      [&](int e) {
        add_plain_example<T>(group.factor(a, e) * a.scale->inverse_grid, one, units);
        one.clear();
      });
  store_sum<T>(a, units);
}

// Writes each example's gradient. grid: tiles of kPatchRows rows, column tiles, examples. block:
// T::kThreads. dynamic smem: patch_bytes().
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_rows_kernel(WeightGradientRows a) {
  CUDP_DYNAMIC_SMEM(float, memory);
  CUDP_SHARED(PatchTerm, terms, [kMaxPatchTerms]);
  const int e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  Sums<T> sums;
  multiply_patches(a.gradient, e, memory, terms, sums);
  store_gradient<T>(a, sums);
}

}  // namespace cudp::inline CUDP_SIMT
