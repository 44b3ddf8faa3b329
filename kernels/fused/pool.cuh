#pragma once
// Max pools with windows of 2 x 2 pixels and stride 1, and activations, in the fused kernel. The
// code has no branches: bits record which pixel of a window was the maximum. A thread processes one
// row of windows for two channels. The pool is computed before the activation, which gives the same
// result for every increasing activation.
#include "kernels/fused/block.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Returns whether b replaces the maximum a. A NaN replaces every number, so that it is not lost.
__device__ __forceinline__ bool beats(float b, float a) { return b > a || b != b; }

/// Returns the larger of the values a and b of two pixels, for each of two channels. If it is b,
/// sets bit number `bit` of flags for the first channel, bit + 16 for the second.
__device__ __forceinline__ Two larger(Two a, Two b, int bit, u32& flags) {
  const bool x = beats(b.x, a.x), y = beats(b.y, a.y);
  flags |= (x ? 1u << bit : 0u) | (y ? 0x10000u << bit : 0u);
  return {x ? b.x : a.x, y ? b.y : a.y};
}
/// Returns v, the values of two channels, with each value either kept or replaced by 0. The first
/// channel's value is kept if bit number `bit` of flags equals `set`, the second channel's if bit
/// number bit + 16 equals `set`.
__device__ __forceinline__ Two where(Two v, u32 flags, int bit, bool set) {
  return {((flags >> bit & 1) != 0) == set ? v.x : 0.0f,
          ((flags >> (bit + 16) & 1) != 0) == set ? v.y : 0.0f};
}
__device__ __forceinline__ Two sum_of(Two a, Two b) { return {a.x + b.x, a.y + b.y}; }

/// Computes pool and activation of convolution i's outputs, and writes them as the next layer's
/// input. P: the kernel's Plan for one network.
template <class P, int i>
__device__ __forceinline__ void pool_forward(Space<P>& s) {
  constexpr ConvStage c = P::stage(i);
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
  constexpr int kPairs = c.out / 2, kRows = c.pooled_height(), kColumns = c.pooled_width();
  const AnyFunction& f = s.functions[i];
  for (int item = thread_number(); item < P::kExamples * kRows * kPairs; item += kThreads) {
    const int j = item % kPairs, y = item / kPairs % kRows, e = item / (kPairs * kRows);
    const float* const from = plane_of<float>(s, kArrays.y, e) + y * c.out_width * c.out + 2 * j;
    const auto at = [&](int row, int x) {
      Two v = two_of(from + (row * c.out_width + x) * c.out);
      CUDP_UNROLL for (int part = 1; part < c.splits; ++part) {
        v = sum_of(v, two_of(from + ((part * c.out_height + row) * c.out_width + x) * c.out));
      }
      return v;
    };
    const auto put = [&](int x, Two v) {
      v = {f.value(v.x), f.value(v.y)};
      if constexpr (i + 1 < P::kConvolutions) {
        constexpr ConvStage next = P::stage(i + 1);
        constexpr SharedLayout::Convolution kNext = P::layout().convolution[i + 1];
        const int place = j / 4 * next.plane + next.pixel_place(y + next.pad, x + next.pad);
        put_numbers<P::input_is_split(i + 1)>(plane_of<u32>(s, kNext.input[0], e),
                                              plane_of<u32>(s, kNext.input[1], e),
                                              4 * place + j % 4, v);
      } else {
        put_numbers<P::kAll>(plane_of<u32>(s, P::layout().hidden_in[0], e),
                             plane_of<u32>(s, P::layout().hidden_in[1], e),
                             (y * kColumns + x) * kPairs + j, v);
      }
    };
    if constexpr (c.pool == 1) {
      CUDP_UNROLL for (int x = 0; x < kColumns; ++x) { put(x, at(0, x)); }
    } else {
      u32 across = 0, across_below = 0, down = 0;
      Two left = at(0, 0), below_left = at(1, 0);
      CUDP_UNROLL for (int x = 0; x < kColumns; ++x) {
        const Two right = at(0, x + 1), below_right = at(1, x + 1);
        const Two top = larger(left, right, x, across);
        const Two bottom = larger(below_left, below_right, x, across_below);
        put(x, larger(top, bottom, x, down));
        left = right;
        below_left = below_right;
      }
      u32* const flags = plane_of<u32>(s, kArrays.flags, e) + j;
      flags[y * kPairs] = across;
      if (y == kRows - 1) flags[c.pool == 1 ? 0 : kRows * kPairs] = across_below;
      flags[(c.out_height + y) * kPairs] = down;
    }
  }
}

/// Backward pass of the max pool that follows convolution i. Reads the gradient of the pool's
/// outputs, already multiplied by the activation's derivative. Writes the gradient of the
/// convolution's outputs, in the layout in which tensor cores read it. P: the kernel's Plan for one
/// network.
template <class P, int i>
__device__ __forceinline__ void pool_backward(Space<P>& s) {
  constexpr ConvStage c = P::stage(i);
  constexpr SharedLayout::Convolution kArrays = P::layout().convolution[i];
  constexpr int kPairs = c.out / 2, kColumns = c.pooled_width(), kPooled = c.pooled_height();
  for (int item = thread_number(); item < P::kExamples * c.out_height * kPairs; item += kThreads) {
    const int j = item % kPairs, y = item / kPairs % c.out_height;
    const int e = item / (kPairs * c.out_height);
    const float* const from = plane_of<float>(s, kArrays.gradient, e) + 2 * j;
    const auto at = [&](int row, int x) { return two_of(from + (row * kColumns + x) * c.out); };
    const auto put = [&](int x, Two v) {
      const int word = 4 * (j / 4 * c.dy_plane + c.dy_place(y, x)) + j % 4;
      put_numbers<P::kAll>(plane_of<u32>(s, kArrays.dy[0], e), plane_of<u32>(s, kArrays.dy[1], e),
                           word, v);
    };
    if constexpr (c.pool == 1) {
      CUDP_UNROLL for (int x = 0; x < kColumns; ++x) { put(x, at(y, x)); }
    } else {
      const u32* const flags = plane_of<u32>(s, kArrays.flags, e) + j;
      const bool has_above = y > 0, has_here = y < kPooled;
      const int above = has_above ? y - 1 : 0, here = has_here ? y : kPooled - 1;
      // An output pixel of this row gets gradient from two rows of windows. The windows that start
      // in the row above pass their gradient down if their maximum is in the lower row (bit of
      // down_above is 1). The windows that start in this row pass it to their upper row if their
      // maximum is there (bit of down_here is 0).
      const u32 down_above = has_above ? flags[(c.out_height + above) * kPairs] : 0;
      const u32 down_here = has_here ? flags[(c.out_height + here) * kPairs] : 0xffffffffu;
      const u32 across = flags[y * kPairs];
      Two left{0.0f, 0.0f};  // gradient that the window to the left passes to its right pixel
      CUDP_UNROLL for (int x = 0; x < kColumns; ++x) {
        const Two v = sum_of(where(at(here, x), down_here, x, false),
                             where(at(above, x), down_above, x, true));
        put(x, sum_of(where(v, across, x, false), left));
        left = where(v, across, x, true);
      }
      put(kColumns, left);
    }
  }
  if constexpr (c.border == 0) {  // other arrays overlap dy, so its zeros must be written again
    constexpr int kPlanes = c.out / 8;
    for (int n = thread_number(); n < P::kExamples * kPlanes * 32; n += kThreads) {
      const int e = n / (kPlanes * 32),
                word = 4 * (n / 32 % kPlanes * c.dy_plane + c.dy_zeros) + n % 32;
      plane_of<u32>(s, kArrays.dy[0], e)[word] = 0;
      if constexpr (P::kAll) plane_of<u32>(s, kArrays.dy[1], e)[word] = 0;
    }
  }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
