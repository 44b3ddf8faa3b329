#pragma once
// Backward pass of the fused kernel: gradients of layers' inputs, and weight gradients of
// convolutions.
#include "kernels/fused/block.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Computes the gradient of the hidden dense layer's inputs, multiplied by the derivative of the
/// activation before it, for all examples of the group (the examples that the block processes at
/// once). In the matrix product, rows are examples and columns are inputs. P: the kernel's Plan for
/// one network.
template <class P>
__device__ __forceinline__ void hidden_backward(Space<P>& s) {
  constexpr DenseStages c = P::kDense;
  constexpr int kLast = P::kConvolutions - 1;
  constexpr int kEach =
      quotient_up(c.steps(), kWarps);  // number of blocks of 16 inputs that a warp computes
  const Lane l;
  const int warp = warp_number();
  const int e = l.g % P::kExamples;
  const bool is_example = l.g < P::kExamples;
  const u32* const high = plane_of<u32>(s, P::layout().hidden_back[0], e) + l.t;
  const u32* const low = plane_of<u32>(s, P::layout().hidden_back[1], e) + l.t;
  const unsigned char* const weight =
      s.image + Packed<P>::kHidden +
      (((l.matrix & 1) * 8 + l.row) * c.weight_pitch() + (l.matrix >> 1)) * kChunk;
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int block = warp * kEach + k;
    if (block >= c.steps()) continue;
    float d[2][4];
    clear(d[0]);
    clear(d[1]);
    CUDP_UNROLL for (int step = 0; step < c.hidden / 16; ++step) {
      const unsigned char* const from =
          weight + (step * 16 * c.weight_pitch() + 2 * block) * kChunk;
      const u32 dy[4] = {is_example ? high[step * 8] : 0, 0, is_example ? high[step * 8 + 4] : 0,
                         0};
      u32 w[4];
      ldmatrix_x4_trans(w, from);
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        if constexpr (P::kAll) {
          const u32 dy_low[4] = {is_example ? low[step * 8] : 0, 0,
                                 is_example ? low[step * 8 + 4] : 0, 0};
          u32 w_low[4];
          ldmatrix_x4_trans(w_low, from + Packed<P>::kLow);
          multiply_add_half(d[n], dy, w_low, n);
          multiply_add_half(d[n], dy_low, w, n);
        }
        multiply_add_half(d[n], dy, w, n);
      }
    }
    if (!is_example) continue;
    const AnyFunction& f = s.functions[kLast];
    float* const to = plane_of<float>(s, P::layout().convolution[kLast].gradient, e);
    CUDP_UNROLL for (int n = 0; n < 2; ++n) {
      const int at = block * 16 + n * 8 + 2 * l.t;
      const Two y = numbers_at<P::kAll>(plane_of<u32>(s, P::layout().hidden_in[0], e),
                                        plane_of<u32>(s, P::layout().hidden_in[1], e), at / 2);
      two_at(to + at) = Two{d[n][0] * f.derivative(y.x), d[n][1] * f.derivative(y.y)};
    }
  }
}

/// Computes the gradient of convolution i's inputs, which are the pooled outputs of convolution i -
/// 1, multiplied by the derivative of the activation between them. A warp takes 16 input pixels by
/// 16 channels at a time; the pixels are of one phase (those with the same row and column modulo
/// the stride). P: the kernel's Plan for one network.
template <class P, int i>
__device__ __forceinline__ void input_gradient(Space<P>& s) {
  constexpr ConvStage c = P::stage(i);
  constexpr typename Packed<P>::Tables kTables = Packed<P>::tables(i);
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
  constexpr int kPairs = c.channels / 16, kTiles = c.back_slots / 16;
  constexpr int kSide = quotient_up(c.kernel, c.stride);
  const Lane l;
  for (int item = warp_number(); item < P::kExamples * c.phases * kTiles * kPairs; item += kWarps) {
    const int phase = item % c.phases, pair = item / c.phases % kPairs;
    const int tile = item / (c.phases * kPairs) % kTiles;
    const int e = item / (c.phases * kPairs * kTiles);
    const int slots = phase * c.back_slots + tile * 16;
    const int place = table_of(s, kTables.back_dy)[slots + (l.matrix & 1) * 8 + l.row] +
                      (l.matrix >> 1) * c.dy_plane;
    const unsigned char* const high = plane_of<unsigned char>(s, kArrays.dy[0], e) + place * kChunk;
    const unsigned char* const low = plane_of<unsigned char>(s, kArrays.dy[1], e) + place * kChunk;
    const int phase_y = phase / c.stride, phase_x = phase % c.stride;
    const unsigned char* const weight =
        s.image + Packed<P>::weights(i) +
        c.weight_chunk((phase_y * c.kernel + phase_x) * c.tap_steps() + pair, l.matrix >> 1,
                       (l.matrix & 1) * 8 + l.row) *
            kChunk;
    float d[2][4];
    clear(d[0]);
    clear(d[1]);
    CUDP_UNROLL for (int tap = 0; tap < kSide * kSide; ++tap) {
      const int ky = tap / kSide * c.stride, kx = tap % kSide * c.stride;
      if (c.kernel % c.stride != 0 && (phase_y + ky >= c.kernel || phase_x + kx >= c.kernel))
        continue;
      CUDP_UNROLL for (int k = 0; k < c.out / 16; ++k) {
        const int from = (2 * k * c.dy_plane - tap / kSide * c.dy_row - tap % kSide) * kChunk;
        const int weights = 2 * ((ky * c.kernel + kx) * c.tap_steps() * c.out + 16 * k) * kChunk;
        u32 dy[4], w[4];
        ldmatrix_x4(dy, high + from);
        ldmatrix_x4_trans(w, weight + weights);
        if constexpr (P::kAll) {
          u32 dy_low[4], w_low[4];
          ldmatrix_x4(dy_low, low + from);
          ldmatrix_x4_trans(w_low, weight + weights + Packed<P>::kLow);
          CUDP_UNROLL for (int n = 0; n < 2; ++n) {
            multiply_add_half(d[n], dy, w_low, n);
            multiply_add_half(d[n], dy_low, w, n);
          }
        }
        CUDP_UNROLL for (int n = 0; n < 2; ++n) { multiply_add_half(d[n], dy, w, n); }
      }
    }
    const AnyFunction& f = s.functions[i - 1];
    float* const to = plane_of<float>(s, P::layout().convolution[i - 1].gradient, e);
    CUDP_UNROLL for (int r = 0; r < 2; ++r) {
      const int slot = slots + l.g + 8 * r;
      const int pixel = table_of(s, kTables.back_pixel)[slot];
      if (pixel == kNone) continue;
      const int x_place = table_of(s, kTables.back_x)[slot];
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        const int word = 4 * (x_place + (2 * pair + n) * c.plane) + l.t;
        const Two y = numbers_at<P::kAll>(plane_of<u32>(s, kArrays.input[0], e),
                                          plane_of<u32>(s, kArrays.input[1], e), word);
        two_at(to + pixel * c.channels + pair * 16 + n * 8 + 2 * l.t) =
            Two{d[n][2 * r] * f.derivative(y.x), d[n][2 * r + 1] * f.derivative(y.y)};
      }
    }
  }
}

/// A unit: the part of convolution i's weight gradient that a warp computes at once, in tiles of 16
/// output channels x 8 inputs. It has the weights of unit_m x unit_k tiles for one tap (position of
/// the kernel): the output channels from 16 block_m on, and the chunks of eight inputs from chunk
/// number `chunk` on. Each lane has kNumbers of the unit's partial derivatives. P: the kernel's
/// Plan for one network.
template <class P, int i>
struct Unit {
  static constexpr int kNumbers = P::stage(i).unit_m * P::stage(i).unit_k * 4;
  int block_m, tap, chunk;

  __device__ __forceinline__ explicit Unit(int unit) {
    constexpr ConvStage c = P::stage(i);
    constexpr int kBlocks = c.blocks_m() / c.unit_m;
    constexpr int kChunks = c.units_k() / c.tap_count;
    block_m = unit % kBlocks * c.unit_m;
    tap = unit / kBlocks / kChunks;
    chunk = unit / kBlocks % kChunks * c.unit_k;
  }

  /// Returns the index among the model's parameters of the weight to which the lane's n-th partial
  /// derivative belongs; -1 if it belongs to padding, which has no weight. l: position of the lane
  /// in the tile.
  __device__ __forceinline__ int parameter(const Lane& l, int n) const {
    constexpr ConvStage c = P::stage(i);
    const int channel = (block_m + n / (4 * c.unit_k)) * 16 + l.g + (n & 2) * 4;
    return c.parameter(channel, tap, chunk + n / 4 % c.unit_k, 2 * l.t + (n & 1));
  }

  /// Computes this lane's part of the unit's gradient for example e, before scaling: the caller
  /// multiplies the numbers by Sums::factor_of() to get partial derivatives. Each number is a sum
  /// over output pixels, added in the order of slots (SlotOrder).
  __device__ __forceinline__ void make(Space<P>& s, int e, float (&gradient)[kNumbers]) const {
    constexpr ConvStage c = P::stage(i);
    constexpr typename Packed<P>::Tables kTables = Packed<P>::tables(i);
    constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
    constexpr bool kXLow = P::input_is_split_back(i), kPairs = c.unit_k == 2;
    const Lane l;
    const int dy_from = (2 * block_m + (l.matrix & 1)) * c.dy_plane;
    const int x_from = c.tap_place(tap, chunk) + (l.matrix >> 1) * (c.is_taps ? c.line : c.plane);
    float d[c.unit_m * c.unit_k][4];
    CUDP_UNROLL for (int n = 0; n < c.unit_m * c.unit_k; ++n) { clear(d[n]); }
    const auto load_x = [&](u32(&x)[4], const Plane& plane, int at) {
      const unsigned char* const from = plane_of<unsigned char>(s, plane, e) + at * kChunk;
      if constexpr (kPairs) {
        ldmatrix_x4_trans(x, from);
      } else {
        u32 half[2];
        ldmatrix_x2_trans(half, from);
        x[0] = half[0];
        x[1] = half[1];
      }
    };
    CUDP_UNROLL for (int step = 0; step < c.slots / 16; ++step) {
      const int x_at = x_from + table_of(s, kTables.x)[step * 16 + (l.matrix & 1) * 8 + l.row] -
                       (c.unit_k == 1 ? (l.matrix >> 1) * (c.is_taps ? c.line : c.plane) : 0);
      const int dy_at = dy_from + table_of(s, kTables.dy)[step * 16 + (l.matrix >> 1) * 8 + l.row];
      u32 x[4], x_low[4];
      load_x(x, kArrays.input[0], x_at);
      if constexpr (kXLow) load_x(x_low, kArrays.input[1], x_at);
      CUDP_UNROLL for (int m = 0; m < c.unit_m; ++m) {
        u32 dy[4], dy_low[4];
        const int at = (dy_at + 2 * m * c.dy_plane) * kChunk;
        ldmatrix_x4_trans(dy, plane_of<unsigned char>(s, kArrays.dy[0], e) + at);
        if constexpr (P::kAll)
          ldmatrix_x4_trans(dy_low, plane_of<unsigned char>(s, kArrays.dy[1], e) + at);
        CUDP_UNROLL for (int k = 0; k < c.unit_k; ++k) {
          if constexpr (P::kAll) multiply_add_half(d[m * c.unit_k + k], dy_low, x, k);
          if constexpr (kXLow) multiply_add_half(d[m * c.unit_k + k], dy, x_low, k);
          multiply_add_half(d[m * c.unit_k + k], dy, x, k);
        }
      }
    }
    // Of a kernel with an odd number of rows, the last pair of chunks has one without weights.
    CUDP_UNROLL for (int n = 0; n < kNumbers; ++n) {
      const bool has_weights =
          !c.is_taps || c.tap_chunks % c.unit_k == 0 || chunk + n / 4 % c.unit_k < c.tap_chunks;
      gradient[n] = has_weights ? d[n / 4][n % 4] : 0.0f;
    }
  }
};

/// Computes the gradient of convolution i's biases for example e, as the matrix product of dy, the
/// gradient of the outputs, and ones. A warp calls it. Writes the gradient to the example's vector
/// (VectorOffsets::bias). Returns the sum of the squares of the numbers that this lane wrote. P:
/// the kernel's Plan for one network.
template <class P, int i>
__device__ __forceinline__ float bias_gradient(Space<P>& s, int e) {
  constexpr ConvStage c = P::stage(i);
  constexpr typename Packed<P>::Tables kTables = Packed<P>::tables(i);
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
  constexpr u32 kOnes = 0x3c003c00u;
  const Lane l;
  float* const to =
      plane_of<float>(s, P::layout().vector, e) + P::kVector.bias + P::channels_before(i);
  float square = 0.0f;
  for (int m = 0; m < c.blocks_m(); ++m) {
    float d[4];
    clear(d);
    CUDP_UNROLL for (int step = 0; step < c.slots / 16; ++step) {
      const int at = ((2 * m + (l.matrix & 1)) * c.dy_plane +
                      table_of(s, kTables.dy)[step * 16 + (l.matrix >> 1) * 8 + l.row]) *
                     kChunk;
      const u32 ones[2] = {kOnes, kOnes};
      u32 dy[4];
      if constexpr (P::kAll) {
        ldmatrix_x4_trans(dy, plane_of<unsigned char>(s, kArrays.dy[1], e) + at);
        multiply_add(d, dy, ones);
      }
      ldmatrix_x4_trans(dy, plane_of<unsigned char>(s, kArrays.dy[0], e) + at);
      multiply_add(d, dy, ones);
    }
    if (l.t == 0) {
      to[m * 16 + l.g] = d[0];
      to[m * 16 + l.g + 8] = d[2];
      square = ScalarLanes::fma(d[0], d[0], square);
      square = ScalarLanes::fma(d[2], d[2], square);
    }
  }
  return square;
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
