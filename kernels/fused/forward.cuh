#pragma once
// Forward pass of the fused kernel: conversion of features to operands of tensor cores,
// convolutions, and the hidden dense layer.
#include "kernels/common/copy_async.cuh"
#include "kernels/fused/block.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Returns the number by which a stored input of the first layer is multiplied to get the feature.
/// Bytes are stored as byte / 256, which is exact in fp16. P: the kernel's Plan for one network.
template <class P>
__device__ __forceinline__ float input_factor(const FusedSum& a) {
  return P::kInput == Input::bytes ? 256.0f * a.scale : 1.0f;
}

/// Starts to copy the features of the examples of `group` (those that the block processes at once)
/// to shared memory, if the features are bytes. P: the kernel's Plan for one network. a: arguments
/// of the launch.
template <class P>
__device__ __forceinline__ void fetch_features(const FusedSum& a, Space<P>& s, const Group& group) {
  if constexpr (P::kInput == Input::bytes) {
    constexpr int kFeatures = P::kStages.features;
    constexpr int kEach = kFeatures / kChunk;
    for (int i = thread_number(); i < P::kExamples * kEach; i += kThreads) {
      const int e = i / kEach, at = i % kEach * kChunk;
      copy_four_async(reinterpret_cast<float*>(plane_of<unsigned char>(s, P::layout().raw, e) + at),
                      reinterpret_cast<const float*>(a.bytes + group.number(a, e) * kFeatures + at),
                      true);
    }
  }
}

/// Writes the features of the examples of `group` to shared memory, in the layout in which the
/// first convolution reads its operands. P: the kernel's Plan for one network. a: arguments of the
/// launch.
template <class P>
__device__ __forceinline__ void build_input(const FusedSum& a, Space<P>& s, const Group& group) {
  constexpr ConvStage c = P::stage(0);
  constexpr bool kLow = P::input_is_split(0);
  constexpr int kRows = c.stride * (c.out_height - 1) + c.kernel;
  constexpr int kColumns = c.is_taps ? c.out_width : c.stride * (c.out_width - 1) + c.kernel;
  constexpr int kItems = c.planes * kRows * kColumns;
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[0];
  for (int item = thread_number(); item < P::kExamples * kItems; item += kThreads) {
    const int column = item % kColumns, rest = item / kColumns, row = rest % kRows;
    const int plane = rest / kRows % c.planes, e = rest / (kRows * c.planes);
    [[maybe_unused]] const std::int64_t number = P::kInput == Input::bytes ? 0 : group.number(a, e);
    const int y = row - c.pad;
    // Returns feature n of the chunk (16 bytes of an operand), or 0 if there is none.
    const auto feature = [&](int n) {
      const int channel = c.is_taps ? n / c.kernel : 8 * plane + n;
      const int x = (c.is_taps ? c.stride * column + n % c.kernel : column) - c.pad;
      const int at = (channel * c.height + y) * c.width + x;
      const bool is_one = channel < c.channels && y >= 0 && y < c.height && x >= 0 && x < c.width;
      if constexpr (P::kInput == Input::bytes) {
        return is_one ? u32{plane_of<unsigned char>(s, P::layout().raw, e)[at]} : 0u;
      } else {
        const std::int64_t place = number * P::kStages.features + at;
        if (!is_one) return 0.0f;
        return a.bytes != nullptr ? a.scale * static_cast<float>(a.bytes[place]) + a.shift
                                  : a.floats[place];
      }
    };
    const int place =
        c.is_taps ? row * c.line + column : plane * c.plane + c.pixel_place(row, column);
    Chunk high, low;
    CUDP_UNROLL for (int n = 0; n < 4; ++n) {
      if constexpr (kLow) {
        const SplitHalves parts = split_halves(feature(2 * n), feature(2 * n + 1));
        high.word[n] = parts.high;
        low.word[n] = parts.low;
      } else {
        high.word[n] = bytes_to_halves<0>(feature(2 * n) | feature(2 * n + 1) << 8);
      }
    }
    plane_of<Chunk>(s, kArrays.input[0], e)[place] = high;
    if constexpr (kLow) plane_of<Chunk>(s, kArrays.input[1], e)[place] = low;
  }
}

/// Computes y = weights x + bias for convolution i, before pool and activation, for all examples of
/// the group (the examples that the block processes at once). A warp computes 16 output pixels x 16
/// output channels of one example at once. If `splits` is more than 1, it computes one of the
/// `splits` parts of these sums, and pool_forward() adds up the parts. P: the kernel's Plan for one
/// network. s: the block's shared memory.
template <class P, int i>
__device__ __forceinline__ void convolve(const FusedSum& a, Space<P>& s) {
  constexpr ConvStage c = P::stage(i);
  constexpr typename Packed<P>::Tables kTables = Packed<P>::tables(i);
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
  constexpr bool kLow = P::input_is_split(i);
  constexpr int kPairs = c.out / 16, kTiles = c.slots / 16;
  constexpr int kSteps = quotient_up(c.steps(), c.splits);
  constexpr int kHalf =
      c.is_taps
          ? c.line
          : c.plane;  // distance between the two halves of a step's operands [chunks of 16 bytes]
  const Lane l;
  for (int item = warp_number(); item < P::kExamples * kTiles * kPairs * c.splits; item += kWarps) {
    const int pair = item % kPairs, split = item / kPairs % c.splits;
    const int tile = item / (kPairs * c.splits) % kTiles, e = item / (kPairs * c.splits * kTiles);
    const int slot = tile * 16 + (l.matrix & 1) * 8 + l.row;
    const int from = (table_of(s, kTables.x)[slot] + (l.matrix >> 1) * kHalf) * kChunk;
    const unsigned char* const high = plane_of<unsigned char>(s, kArrays.input[0], e) + from;
    const unsigned char* const low = plane_of<unsigned char>(s, kArrays.input[1], e) + from;
    const int channel = pair * 16 + (l.matrix >> 1) * 8 + l.row;
    const unsigned char* const weight =
        s.image + Packed<P>::weights(i) + c.weight_chunk(0, l.matrix & 1, channel) * kChunk;
    const int first = split * kSteps;
    float d[2][4], cross[2][4], rest[2][4];
    CUDP_UNROLL for (int n = 0; n < 2; ++n) {
      clear(d[n]);
      clear(cross[n]);
      clear(rest[n]);
    }
    CUDP_UNROLL for (int k = 0; k < kSteps; ++k) {
      const int step = first + k;
      if (c.splits > 1 && step >= c.steps()) continue;
      const int at = (c.splits == 1 ? c.tap_place(k / c.tap_steps(), 2 * (k % c.tap_steps()))
                                    : table_of(s, kTables.step)[step]) *
                     kChunk;
      const int weight_step = 2 * c.out * step * kChunk;
      u32 x[4], w[4], w_low[4];
      ldmatrix_x4(x, high + at);
      ldmatrix_x4(w, weight + weight_step);
      ldmatrix_x4(w_low, weight + weight_step + Packed<P>::kLow);
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        multiply_add_half(d[n], x, w, n);
        multiply_add_half(cross[n], x, w_low, n);
      }
      if constexpr (kLow) {
        u32 x_low[4];
        ldmatrix_x4(x_low, low + at);
        CUDP_UNROLL for (int n = 0; n < 2; ++n) { multiply_add_half(rest[n], x_low, w, n); }
      }
    }
    const float factor = i == 0 ? input_factor<P>(a) : 1.0f;
    const float* const bias = floats_of(s, Packed<P>::kBiases) + P::channels_before(i);
    float* const y = plane_of<float>(s, kArrays.y, e) + split * c.pixels() * c.out;
    CUDP_UNROLL for (int r = 0; r < 2; ++r) {
      const int pixel = table_of(s, kTables.pixel)[tile * 16 + l.g + 8 * r];
      if (pixel == kNone) continue;
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        const int at = pair * 16 + n * 8 + 2 * l.t;
        const auto value = [&](int k) {
          float sum = d[n][2 * r + k] + (cross[n][2 * r + k] + rest[n][2 * r + k]);
          if constexpr (i == 0 && P::kInput == Input::bytes) sum *= factor;
          return split == 0 ? sum + bias[at + k] : sum;
        };
        two_at(y + pixel * c.out + at) = Two{value(0), value(1)};
      }
    }
  }
}

/// Computes the hidden dense layer's products as partial sums: each warp multiplies its share of
/// the inputs. In the matrix product, rows are the examples of the group (the examples that the
/// block processes at once; rows without an example are 0) and columns are outputs. P: the kernel's
/// Plan for one network.
template <class P>
__device__ __forceinline__ void hidden_forward(Space<P>& s) {
  constexpr DenseStages c = P::kDense;
  constexpr int kEach = quotient_up(c.steps(), kWarps);
  const Lane l;
  const int warp = warp_number();
  const int e = l.g % P::kExamples;
  const bool is_example = l.g < P::kExamples;
  const u32* const high = plane_of<u32>(s, P::layout().hidden_in[0], e) + l.t;
  const u32* const low = plane_of<u32>(s, P::layout().hidden_in[1], e) + l.t;
  const unsigned char* const weight =
      s.image + Packed<P>::kHidden +
      (((l.matrix >> 1) * 8 + l.row) * c.weight_pitch() + (l.matrix & 1)) * kChunk;
  float d[c.hidden / 8][4];
  CUDP_UNROLL for (int n = 0; n < c.hidden / 8; ++n) { clear(d[n]); }
  CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
    const int step = warp * kEach + k;
    if (step >= c.steps()) continue;
    const u32 x[4] = {is_example ? high[step * 8] : 0, 0, is_example ? high[step * 8 + 4] : 0, 0};
    CUDP_UNROLL for (int u = 0; u < c.hidden / 16; ++u) {
      const unsigned char* const from = weight + (u * 16 * c.weight_pitch() + 2 * step) * kChunk;
      u32 w[4];
      ldmatrix_x4(w, from);
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        if constexpr (P::kAll) {
          const u32 x_low[4] = {is_example ? low[step * 8] : 0, 0,
                                is_example ? low[step * 8 + 4] : 0, 0};
          u32 w_low[4];
          ldmatrix_x4(w_low, from + Packed<P>::kLow);
          multiply_add_half(d[2 * u + n], x, w_low, n);
          multiply_add_half(d[2 * u + n], x_low, w, n);
        }
        multiply_add_half(d[2 * u + n], x, w, n);
      }
    }
  }
  if (!is_example) return;
  float* const to = plane_of<float>(s, P::layout().partial, e) + warp * c.hidden + 2 * l.t;
  CUDP_UNROLL for (int n = 0; n < c.hidden / 8; ++n) { two_at(to + n * 8) = Two{d[n][0], d[n][1]}; }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
