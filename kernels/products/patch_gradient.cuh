#pragma once
#include "kernels/common/loss_exponent.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/products/chunk.cuh"
#include "kernels/products/half_tile.cuh"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/tiled_product.cuh"

namespace cudp::inline CUDP_SIMT {

/// Tile of the weight gradient of a 3x3 convolution: a block computes kPatchRows x `columns`
/// numbers, each of its first nine warps those of one tap. The last warp computes the sums of dy,
/// the gradient of the bias: its tap's x is 1. 16 products at a time are added to each number, in
/// the order of the patch's pixels, and a number is at the same position of a fragment in tiles of
/// either width. So norms and sums, whose tiles differ, see the same bits.
template <int columns>
struct PatchTile {
  static constexpr int kColumns = columns;
  static constexpr int kThreads = static_cast<int>(kPatchThreads);
  static constexpr int kRowsThread = kPatchChannels / 8;
  static constexpr int kColumnsThread = columns / 4;
  static constexpr int kBlocks = 2;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  static __device__ __forceinline__ int tap() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ __forceinline__ bool is_bias() { return tap() == kPatchTaps; }
  // Input channel and output channel, among those of the tile, of the thread's number (m, n).
  static __device__ __forceinline__ int channel(int m) { return 8 * m + lane() / 4; }
  static __device__ __forceinline__ int column(int n) { return n / 2 * 8 + lane() % 4 * 2 + n % 2; }
};

/// The numbers of a tile that one thread computes: of an example's gradient in float32, or of a sum
/// as integers (see UnitSums). T: type of the tile.
template <class T, class Number>
struct PatchCells {
  Number cell[T::kRowsThread][T::kColumnsThread];

  /// Calls body(m, n) for all indices of `cell`.
  template <class Body>
  static __device__ __forceinline__ void for_each(const Body& body) {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) { body(m, n); }
    }
  }
  __device__ __forceinline__ void clear() {
    for_each([&](int m, int n) { cell[m][n] = 0; });
  }
  /// Calls body(index, number) for every number of the gradient of g. index: index of the number's
  /// parameter among those of the layer.
  template <class Body>
  __device__ __forceinline__ void for_each_place(const WeightGradient& g, const Body& body) const {
    CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; ++n) {
      const int column = first_column<T>() + T::column(n);
      if (column >= g.columns) continue;
      if (T::is_bias()) {
        if (blockIdx.x == 0 && T::channel(0) == 0)
          body(static_cast<std::int64_t>(g.columns) * g.rows + column, cell[0][n]);
        continue;
      }
      CUDP_UNROLL for (int m = 0; m < T::kRowsThread; ++m) {
        const int row =
            (static_cast<int>(blockIdx.x) * kPatchChannels + T::channel(m)) * kPatchTaps + T::tap();
        if (row < g.rows) body(static_cast<std::int64_t>(column) * g.rows + row, cell[m][n]);
      }
    }
  }
};

/// A patch in shared memory, from which a block computes its tile of a convolution's weight
/// gradient.
template <class T>
class Patch {
 public:
  /// Computes for each product of a patch the offsets of its pixel in x and in dy. g: arguments of
  /// the kernel. memory: shared memory of patch_bytes() bytes. All threads must synchronise before
  /// multiply().
  __device__ __forceinline__ Patch(const WeightGradient& g, Chunk* memory)
      : g_(g),
        x_(memory),
        dy_(memory + x_chunks(g.patch)),
        ones_(dy_ + dy_chunks(g.patch)),
        x_offsets_(reinterpret_cast<std::uint16_t*>(ones_ + 1)),
        dy_offsets_(x_offsets_ + kMaxPatchTerms) {
    const ConvPatch& p = g.patch;
    const int terms = p.lines * p.dy.width;
    CUDP_UNROLL_BY(1)
    for (int t = thread(); t < kMaxPatchTerms; t += T::kThreads) {
      const int y = t / p.dy.width;
      const int x = t - y * p.dy.width;
      const bool inside = t < terms;
      x_offsets_[t] = static_cast<std::uint16_t>(inside ? (y * p.x.row() + x) * p.stride : 0);
      dy_offsets_[t] =
          static_cast<std::uint16_t>(inside ? y * p.dy.row() + x + p.dy.border : p.dy_pixels.n);
    }
    if (thread() < kGroups) dy_[(thread() + 1) * (p.dy_pixels.n + 1) - 1] = {};
    if (thread() == 0) *ones_ = {{0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u}};
  }

  /// Computes this block's tile of the weight gradient of example e. All threads must call it.
  /// sums: result, the thread's numbers of the tile.
  __device__ __forceinline__ void multiply(int e, PatchCells<T, float>& sums) const {
    sums.clear();
    CUDP_UNROLL_BY(1)
    for (int line = 0; line < g_.patch.dy.height; line += g_.patch.lines) {
      __syncthreads();  // the patch before has been multiplied
      copy(e, line, ScalarLanes::from_bits(exponent(e) << 23));
      __syncthreads();
      add(sums);
    }
    const float back = ScalarLanes::from_bits((254 - exponent(e)) << 23);
    sums.for_each([&](int m, int n) { sums.cell[m][n] *= back; });
  }

 private:
  /// Number of groups of kChunkChannels channels of dy.
  static constexpr int kGroups = T::kColumns / kChunkChannels;

  /// Returns the number of chunks of the pixels of x.
  static __device__ __forceinline__ int x_chunks(const ConvPatch& p) {
    return kPatchChannels / kChunkChannels * p.x_pixels.n;
  }
  /// Returns the number of chunks of the pixels of dy, with a zero behind each group.
  static __device__ __forceinline__ int dy_chunks(const ConvPatch& p) {
    return kGroups * (p.dy_pixels.n + 1);
  }

  /// Returns loss_exponent() of example e. It is computed wherever it is used, because the sums
  /// leave no register to keep it.
  __device__ __forceinline__ u32 exponent(int e) const {
    return loss_exponent(g_.logit_gradients, g_.outputs, e);
  }
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }

  /// Copies pixels of `groups` groups of kChunkChannels channels, times `scale`, rounded to fp16;
  /// zeros for those beyond the last channel. from: the first channel's first pixel. plane:
  /// distance between channels [floats]. channels: number of channels from there on. to, pitch:
  /// destination, and the distance between groups there [chunks].
  static __device__ __forceinline__ void copy(const float* from, int plane, int channels,
                                              int groups, const Divisor& pixels, float scale,
                                              Chunk* to, int pitch) {
    CUDP_UNROLL_BY(1)  // the sums occupy the registers
    for (int i = late(thread()); i < groups * pixels.n; i += T::kThreads) {
      const int group = quotient(i, pixels);
      const int pixel = i - group * pixels.n;
      const int first = group * kChunkChannels;
      const int to_at = group * pitch + pixel;
      const int first_plane = first * plane;
      to[to_at] = load_chunk(from + first_plane + pixel, plane, channels - first, scale);
    }
  }

  /// Copies the patch of example e that begins with output row `line`. dy_scale: what dy is
  /// multiplied by.
  __device__ __forceinline__ void copy(int e, int line, float dy_scale) const {
    const ConvPatch& p = g_.patch;
    const int channel = static_cast<int>(blockIdx.x) * kPatchChannels;
    const int x_at =
        e * p.x.size() + channel * p.x.plane() + (line * p.stride + p.corner) * p.x.row();
    copy(g_.x.data + x_at, p.x.plane(), p.x.channels - channel, kPatchChannels / kChunkChannels,
         p.x_pixels, 1.0f, x_, p.x_pixels.n);
    const int column = first_column<T>();
    const int dy_at = e * p.dy.size() + column * p.dy.plane() + (line + p.dy.border) * p.dy.row();
    copy(g_.dy.data + dy_at, p.dy.plane(), p.dy.channels - column, kGroups, p.dy_pixels, dy_scale,
         dy_, p.dy_pixels.n + 1);
  }

  /// Adds the products of the patch to `sums`.
  __device__ __forceinline__ void add(PatchCells<T, float>& sums) const {
    if (T::is_bias() && blockIdx.x != 0) return;
    const ConvPatch& p = g_.patch;
    // Lane 8 i + r passes the address of row r of the i-th matrix of 8 x 8 numbers.
    const auto now = static_cast<unsigned>(late(thread()));
    const int first = static_cast<int>(now / 8 % 2);
    const int second = static_cast<int>(now / 16 % 2);
    const int r = static_cast<int>(now % 8);
    const int warp = static_cast<int>(now / kWarp);
    const int tap = warp / 3 * p.x.row() + warp % 3 + p.corner;
    const int x_pitch = warp == kPatchTaps ? 0 : p.x_pixels.n;  // the bias reads the same ones
    const int dy_pitch = p.dy_pixels.n + 1;
    const int x_group = first * x_pitch;
    const int dy_group = second * dy_pitch;
    const Chunk* const x = x_pitch != 0 ? x_ + x_group + tap : ones_;
    const Chunk* const dy = dy_ + dy_group;
    const int x_term = 8 * second;
    const int dy_term = 8 * first;
    const int terms = p.lines * p.dy.width;
    const std::uint16_t* x_offset = x_offsets_ + x_term + r;
    const std::uint16_t* dy_offset = dy_offsets_ + dy_term + r;
    const std::uint16_t* const end = x_offset + terms;
    CUDP_UNROLL_BY(1)
    for (; x_offset < end; x_offset += kPatchStep, dy_offset += kPatchStep) {
      const Chunk* const x_at = x + (x_pitch != 0 ? *x_offset : 0);
      const Chunk* const dy_at = dy + *dy_offset;
      u32 a[2][4];
      CUDP_UNROLL for (int m = 0; m < 2; ++m) {
        const int groups = 2 * m * x_pitch;
        ldmatrix_x4_trans(a[m], x_at + groups);
      }
      CUDP_UNROLL for (int n = 0; n < T::kColumnsThread; n += 4) {
        u32 y[4];
        const int groups = n / 2 * dy_pitch;
        ldmatrix_x4_trans(y, dy_at + groups);
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          const int pair = 2 * i;
          const u32 b[2] = {y[pair], y[pair + 1]};
          CUDP_UNROLL for (int m = 0; m < 2; ++m) { add_product(sums.cell, m, n / 2 + i, a[m], b); }
        }
      }
    }
  }

  const WeightGradient& g_;
  Chunk* x_;
  Chunk* dy_;
  Chunk* ones_;
  std::uint16_t* x_offsets_;
  std::uint16_t* dy_offsets_;
};

// Computes squared norms of gradients. grid: tiles of kPatchRows rows, column tiles, examples.
// block: T::kThreads. dynamic smem: patch_bytes(). A multiprocessor holds 640 threads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_norm_kernel(WeightGradientNorm a) {
  CUDP_DYNAMIC_SMEM(Chunk, memory);
  CUDP_SHARED(float, partial, [T::kThreads / kWarp]);
  const int e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  PatchCells<T, float> sums;
  Patch<T>(a.gradient, memory).multiply(e, sums);
  float square = 0.0f;
  sums.for_each_place(a.gradient, [&](std::int64_t, float v) { square += v * v; });
  square = block_sum(square, partial);
  const unsigned tile = blockIdx.y * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0)
    a.parts[static_cast<std::int64_t>(tile) * a.gradient.batch.capacity + e] = square;
}

// Adds gradients. grid: tiles of kPatchRows rows, column tiles, stripes of examples. block:
// T::kThreads. dynamic smem: patch_bytes(). At least 640 threads (2 blocks) fit on a multiprocessor
// (__launch_bounds__).
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_sum_kernel(WeightGradientSum a) {
  CUDP_DYNAMIC_SMEM(Chunk, memory);
  if (static_cast<int>(blockIdx.z) >= live_examples(a.gradient.batch)) return;
  const auto factor = [&](int e) {
    return a.factors[static_cast<std::int64_t>(e) * a.factor_stride];
  };
  PatchCells<T, std::int32_t> units;
  units.clear();
  const Patch<T> patch(a.gradient, memory);
  CUDP_UNROLL_BY(1)
  for (auto e = static_cast<int>(blockIdx.z); e < live_examples(a.gradient.batch);
       e += static_cast<int>(gridDim.z)) {
    if (factor(e) == 0.0f) continue;
    PatchCells<T, float> one;
    patch.multiply(e, one);
    const float scale = factor(late(e)) * a.scale->inverse_grid;
    one.for_each(
        [&](int m, int n) { units.cell[m][n] += saturated_product(scale, one.cell[m][n]); });
  }
  units.for_each_place(a.gradient, [&](std::int64_t at, std::int32_t v) {
    atomicAdd(a.sum + at, static_cast<FixedPoint>(static_cast<long long>(v)));
  });
}

// Writes each example's gradient. grid: tiles of kPatchRows rows, column tiles, examples. block:
// T::kThreads. dynamic smem: patch_bytes().
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    patch_gradient_rows_kernel(WeightGradientRows a) {
  CUDP_DYNAMIC_SMEM(Chunk, memory);
  const int e = static_cast<int>(blockIdx.z);
  if (e >= live_examples(a.gradient.batch)) return;
  PatchCells<T, float> sums;
  Patch<T>(a.gradient, memory).multiply(e, sums);
  sums.for_each_place(a.gradient, [&](std::int64_t at, float v) {
    a.gradients[static_cast<std::int64_t>(e) * a.stride + at] = v;
  });
}

}  // namespace cudp::inline CUDP_SIMT
