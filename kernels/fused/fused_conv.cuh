#pragma once
// Convolutions of one example by a block, in shared memory. Products go row by row: a row's numbers
// are in registers while the kernel slides along it, so a multiply-add takes about 0.3 numbers from
// shared memory.
#include <cstdint>

#include "kernels/fused/rows.cuh"

namespace cudp::inline CUDP_SIMT {

/// A convolution's sizes, and how its planes and weights lie in shared memory.
template <class L>
struct Conv : L {
  static constexpr int kOutHeight = (L::kHeight + 2 * L::kPad - L::kKernel) / L::kStride + 1;
  static constexpr int kOutWidth = (L::kWidth + 2 * L::kPad - L::kKernel) / L::kStride + 1;
  static constexpr int kPooledHeight = kOutHeight - L::kPool + 1;
  static constexpr int kPooledWidth = kOutWidth - L::kPool + 1;
  static constexpr int kPooled = L::kOut * kPooledHeight * kPooledWidth;
  static constexpr int kTaps = L::kKernel * L::kKernel;
  static constexpr int kWeights = L::kOut * L::kChannels * kTaps;

  // Input planes, within their padding of zeros.
  static constexpr int kRow = round_up(L::kWidth + 2 * L::kPad, 4);
  static constexpr int kPlane = spread((L::kHeight + 2 * L::kPad) * kRow);
  static constexpr int kInput = L::kChannels * kPlane;
  static __device__ __forceinline__ int input_at(int c, int y, int x) {
    return c * kPlane + (y + L::kPad) * kRow + x + L::kPad;
  }

  // Output planes, between rows of zeros that the input gradient reads, if there is one: output
  // rows that a kernel row of one phase would reach beyond the first and last.
  static constexpr bool kGivesInputGradient = requires { typename L::Input; };
  static constexpr int kPhaseTaps = (L::kKernel + L::kStride - 1) / L::kStride;
  static constexpr int kOutBorder = kGivesInputGradient ? kPhaseTaps - 1 : 0;
  static constexpr int kOutRow = kOutWidth > 8 ? spread(kOutWidth) : round_up(kOutWidth, 4);
  static constexpr int kOutPlane = spread((kOutHeight + 2 * kOutBorder) * kOutRow);
  static constexpr int kOutput = L::kOut * kOutPlane;
  static __device__ __forceinline__ int output_at(int c, int y, int x) {
    return c * kOutPlane + (y + kOutBorder) * kOutRow + x;
  }

  // Weights [out, in, kernel, kernel], padded to suit threads that differ by one input channel, or
  // in the input gradient by an output channel.
  static constexpr int kWeightAlign = L::kKernel % 4 == 0 ? 4 : 1;
  static constexpr int kIn = kWeightAlign == 1 ? kTaps : spread(kTaps);
  static constexpr int kOutStride =
      kGivesInputGradient ? round_up(L::kChannels * kIn, 32) + (kWeightAlign == 1 ? 9 : 8)
                          : L::kChannels * kIn;
  static constexpr bool kWeightsAreFlat = kOutStride == L::kChannels * kTaps;
  static constexpr int kWeightSpace = L::kOut * kOutStride;
  static __device__ __forceinline__ int weight_at(int flat) {
    const int out = flat / (L::kChannels * kTaps);
    const int rest = flat - out * (L::kChannels * kTaps);
    return out * kOutStride + rest / kTaps * kIn + rest % kTaps;
  }

  /// Gradients that a thread holds, and how many threads have any.
  static constexpr int kGradients = L::Gradient::kChannels * L::kKernel;
  static constexpr int kKept = kept_of(kGradients, L::Gradient::kSlices);
};

/// y = f(convolution of x + bias).
/// A thread makes Forward's kChannels x kRows x kColumns outputs from one in kSlices of the input
/// channels; neighbouring threads have the other slices, and their sums are added.
template <class C, class Function>
__device__ __forceinline__ void convolve(const Function& f, const float* x, const float* weight,
                                         const float* bias, float* y) {
  using T = typename C::Forward;
  constexpr int kGroups = C::kOut / T::kChannels;
  constexpr int kAcross = C::kOutWidth / T::kColumns;
  constexpr int kDown = C::kOutHeight / T::kRows;
  constexpr int kItems = T::kSlices * kGroups * kAcross * kDown;
  static_assert(kGroups * T::kChannels == C::kOut && kAcross * T::kColumns == C::kOutWidth &&
                kDown * T::kRows == C::kOutHeight);
  static_assert(kItems <= kFusedThreads && kItems % kWarp == 0 && kWarp % T::kSlices == 0);
  const int t = thread_number();
  if (t >= kItems) return;
  const int slice = t % T::kSlices;
  const int group = t / T::kSlices % kGroups;  // its channels are kGroups apart
  const int column = t / (T::kSlices * kGroups) % kAcross * T::kColumns;
  const int row = t / (T::kSlices * kGroups * kAcross) * T::kRows;

  constexpr int kSpan = (T::kColumns - 1) * C::kStride + C::kKernel;
  constexpr int kAlign = kAcross == 1 ? 4 : T::kColumns * C::kStride % 4 == 0 ? 4 : 2;
  static_assert(kAcross == 1 || T::kColumns * C::kStride % 2 == 0);
  constexpr int kSums = T::kChannels * T::kRows * T::kColumns;
  float sums[kSums];
  clear(sums);
  const auto add_row = [&](const float(&from)[kSpan], const float(&w)[T::kChannels][C::kKernel],
                           int r) {
    CUDP_UNROLL for (int k = 0; k < C::kKernel; ++k) {
      CUDP_UNROLL for (int c = 0; c < T::kChannels; ++c) {
        CUDP_UNROLL for (int i = 0; i < T::kColumns; ++i) {
          sums[(c * T::kRows + r) * T::kColumns + i] += from[i * C::kStride + k] * w[c][k];
        }
      }
    }
  };
  for (int in = slice; in < C::kChannels; in += T::kSlices) {
    const float* const corner =
        x + in * C::kPlane + row * C::kStride * C::kRow + column * C::kStride;
    const float* const w_in = weight + group * C::kOutStride + in * C::kIn;
    const auto read_weights = [&](int ky, float(&w)[T::kChannels][C::kKernel]) {
      CUDP_UNROLL for (int c = 0; c < T::kChannels; ++c) {
        read_row<C::kWeightAlign>(w_in + c * kGroups * C::kOutStride + ky * C::kKernel, w[c]);
      }
    };
    float from[kSpan];
    if constexpr (T::kRows == 1) {
      CUDP_UNROLL_BY(2)
      for (int ky = 0; ky < C::kKernel; ++ky) {
        float w[T::kChannels][C::kKernel];
        read_weights(ky, w);
        read_row<kAlign>(corner + ky * C::kRow, from);
        add_row(from, w, 0);
      }
    } else {  // every row of the input is read once
      float w[C::kKernel][T::kChannels][C::kKernel];
      CUDP_UNROLL for (int ky = 0; ky < C::kKernel; ++ky) { read_weights(ky, w[ky]); }
      CUDP_UNROLL for (int y_in = 0; y_in < (T::kRows - 1) * C::kStride + C::kKernel; ++y_in) {
        read_row<kAlign>(corner + y_in * C::kRow, from);
        CUDP_UNROLL for (int r = 0; r < T::kRows; ++r) {
          const int ky = y_in - r * C::kStride;
          if (ky >= 0 && ky < C::kKernel) add_row(from, w[ky], r);
        }
      }
    }
  }
  reduce_scatter<T::kSlices, kSums>(sums);
  const Kept kept = kept_by<kSums, T::kSlices>(slice);
  constexpr int kKept = kept_of(kSums, T::kSlices);
  CUDP_UNROLL for (int i = 0; i < kKept; ++i) {
    if (i >= kept.count) continue;
    const int n = kept.first + i;
    const int c = group + n / (T::kRows * T::kColumns) * kGroups;
    const int at = n % (T::kRows * T::kColumns);
    y[C::output_at(c, row + at / T::kColumns, column + at % T::kColumns)] =
        f.value(sums[i] + bias[c]);
  }
}

/// Which numbers of a weight gradient a thread makes: a kernel row of Gradient::kChannels output
/// channels, kGroups apart, over one in kSlices of the output's rows.
template <class C>
struct GradientShare {
  using T = typename C::Gradient;
  static constexpr int kGroups = C::kOut / T::kChannels;
  static constexpr int kItems = T::kSlices * C::kChannels * kGroups * C::kKernel;
  static_assert(kGroups * T::kChannels == C::kOut && kItems <= kFusedThreads &&
                kWarp % T::kSlices == 0);
  int slice, in, group, ky;
  bool works;

  __device__ __forceinline__ GradientShare() {
    const int t = thread_number();
    works = t < kItems;
    const int item = works ? t : 0;
    slice = t % T::kSlices;  // true of idle lanes too: they take part in the sums
    in = item / T::kSlices % C::kChannels;
    group = item / (T::kSlices * C::kChannels) % kGroups;
    ky = item / (T::kSlices * C::kChannels * kGroups);
  }

  /// Calls body(i, index): the i-th number kept belongs at `index` of [out, in, kernel, kernel].
  template <class Body>
  __device__ __forceinline__ void for_each_kept(const Body& body) const {
    const Kept kept = kept_by<C::kGradients, T::kSlices>(slice);
    CUDP_UNROLL for (int i = 0; i < C::kKept; ++i) {
      if (!works || i >= kept.count) continue;
      const int n = kept.first + i;
      const int out = group + n / C::kKernel * kGroups;
      body(i, (out * C::kChannels + in) * C::kTaps + ky * C::kKernel + n % C::kKernel);
    }
  }
};

/// gradient = this thread's share of the weight gradient, from x and dy (laid out as y); 0 where it
/// has fewer numbers.
template <class C>
__device__ __forceinline__ void weight_gradient(const float* x, const float* dy,
                                                float (&gradient)[C::kGradients]) {
  using T = typename C::Gradient;
  const GradientShare<C> mine;
  clear(gradient);
  if (mine.works) {
    constexpr int kSpan = (C::kOutWidth - 1) * C::kStride + C::kKernel;
    CUDP_UNROLL_BY(1)
    for (int row = mine.slice; row < C::kOutHeight; row += T::kSlices) {
      float from[kSpan];
      read_row<4>(x + mine.in * C::kPlane + (row * C::kStride + mine.ky) * C::kRow, from);
      CUDP_UNROLL for (int c = 0; c < T::kChannels; ++c) {
        float dy_row[C::kOutWidth];
        read_row<4>(dy + C::output_at(mine.group + c * GradientShare<C>::kGroups, row, 0), dy_row);
        CUDP_UNROLL for (int i = 0; i < C::kOutWidth; ++i) {
          CUDP_UNROLL for (int k = 0; k < C::kKernel; ++k) {
            gradient[c * C::kKernel + k] += from[i * C::kStride + k] * dy_row[i];
          }
        }
      }
    }
  }
  __syncwarp();
  reduce_scatter<T::kSlices, C::kGradients>(gradient);
}

/// Sums of dy over each output channel's pixels to `to`, a warp some channels; returns the squares
/// of those this thread holds.
template <class C>
__device__ __forceinline__ float bias_gradient(const float* dy, float* to) {
  const int lane = thread_number() % kWarp;
  float square = 0.0f;
  for (int c = thread_number() / kWarp; c < C::kOut; c += kFusedThreads / kWarp) {
    float sum = 0.0f;
    for (int i = lane; i < C::kOutHeight * C::kOutWidth; i += kWarp)
      sum += dy[C::output_at(c, i / C::kOutWidth, i % C::kOutWidth)];
    sum = warp_sum(sum);
    if (lane == 0) {
      to[c] = sum;
      square += sum * sum;
    }
  }
  return square;
}

/// Pixels of the input that some output looks at: the others' gradient is 0.
template <class C>
__device__ __forceinline__ bool is_seen(int y, int x) {
  return y < (C::kOutHeight - 1) * C::kStride + C::kKernel - C::kPad &&
         x < (C::kOutWidth - 1) * C::kStride + C::kKernel - C::kPad;
}

/// dx = gradient by the pixels that are seen, laid out as x; it may be where x was, from which
/// nothing may be read after the barrier inside. dy is laid out as y, its border rows zero.
/// A thread makes the rows of one phase (padded row = phase modulo the stride), Input::kRows of
/// them, from one in kSlices of the output channels: the kernel rows of that phase alone reach
/// them.
template <class C>
__device__ __forceinline__ void input_gradient(const float* dy, const float* weight, float* dx) {
  using T = typename C::Input;
  constexpr int kFirst = C::kPad / C::kStride;  // rows of a phase before the first that is wanted
  constexpr int kPhaseRows = C::kOutHeight + C::kPhaseTaps - 1 - 2 * kFirst;
  constexpr int kTiles = kPhaseRows / T::kRows;
  constexpr int kSpan = (C::kOutWidth - 1) * C::kStride + C::kKernel;
  constexpr int kSums = T::kRows * kSpan;
  static_assert(C::kKernel % C::kStride == 0 && C::kPad % C::kStride == 0 &&
                kTiles * T::kRows == kPhaseRows);
  static_assert(T::kSlices * C::kChannels * C::kStride * kTiles == kFusedThreads);
  const int t = thread_number();
  const int slice = t % T::kSlices;
  const int in = t / T::kSlices % C::kChannels;
  const int phase = t / (T::kSlices * C::kChannels) % C::kStride;
  const int first = kFirst + t / (T::kSlices * C::kChannels * C::kStride) * T::kRows;

  float sums[kSums];
  clear(sums);
  CUDP_UNROLL_BY(1)
  for (int out = slice; out < C::kOut; out += T::kSlices) {
    float w[C::kPhaseTaps][C::kKernel];
    CUDP_UNROLL for (int tap = 0; tap < C::kPhaseTaps; ++tap) {
      read_row<C::kWeightAlign>(
          weight + out * C::kOutStride + in * C::kIn + (phase + tap * C::kStride) * C::kKernel,
          w[tap]);
    }
    CUDP_UNROLL for (int r = 0; r < T::kRows + C::kPhaseTaps - 1; ++r) {
      float dy_row[C::kOutWidth];  // of output row first + r - (kPhaseTaps - 1)
      read_row<4>(dy + out * C::kOutPlane + (first + r) * C::kOutRow, dy_row);
      CUDP_UNROLL for (int tap = 0; tap < C::kPhaseTaps; ++tap) {
        const int row = r + tap - (C::kPhaseTaps - 1);
        if (row < 0 || row >= T::kRows) continue;
        CUDP_UNROLL for (int i = 0; i < C::kOutWidth; ++i) {
          CUDP_UNROLL for (int k = 0; k < C::kKernel; ++k) {
            sums[row * kSpan + i * C::kStride + k] += dy_row[i] * w[tap][k];
          }
        }
      }
    }
  }
  reduce_scatter<T::kSlices, kSums>(sums);
  __syncthreads();
  const Kept kept = kept_by<kSums, T::kSlices>(slice);
  constexpr int kKept = kept_of(kSums, T::kSlices);
  CUDP_UNROLL for (int i = 0; i < kKept; ++i) {
    if (i >= kept.count) continue;
    const int n = kept.first + i;
    const int y = phase + C::kStride * (first + n / kSpan) - C::kPad;
    const int x = n % kSpan - C::kPad;
    if (y >= 0 && y < C::kHeight && x >= 0 && x < C::kWidth) dx[C::input_at(in, y, x)] = sums[i];
  }
}

/// Calls body(pixel, channel, row, column) for every pixel of height x width planes. A row has as
/// many lanes as the next power of two: idle ones cost less than finding each pixel's place.
template <int channels, int height, int width, class Body>
__device__ __forceinline__ void for_each_in_planes(const Body& body) {
  constexpr int kLanes = width <= 4 ? 4 : width <= 8 ? 8 : width <= 16 ? 16 : 32;
  static_assert(width <= kLanes);
  const int column = thread_number() % kLanes;
  if (column >= width) return;
  for (int line = thread_number() / kLanes; line < channels * height;
       line += kFusedThreads / kLanes)
    body(line * width + column, line / height, line % height, column);
}

/// Largest of each kPool x kPool window of y, one pixel apart, to put(c, y, x, value), and which it
/// was (the first, or a NaN) to `which` [kPooled].
template <class C, class Put>
__device__ __forceinline__ void pool(const float* y, std::uint8_t* which, const Put& put) {
  for_each_in_planes<C::kOut, C::kPooledHeight, C::kPooledWidth>(
      [&](int i, int c, int row, int column) {
        const float* const corner = y + C::output_at(c, row, column);
        float best = corner[0];
        int winner = 0;
        CUDP_UNROLL for (int k = 1; k < C::kPool * C::kPool; ++k) {
          const float v = corner[k / C::kPool * C::kOutRow + k % C::kPool];
          const bool better = v > best || v != v;
          best = better ? v : best;
          winner = better ? k : winner;
        }
        put(c, row, column, best);
        if (C::kPool > 1) which[i] = static_cast<std::uint8_t>(winner);
      });
}

/// y = its function's derivative times what the windows over each pixel give it; get(c, y, x) is
/// the pooled pixel's gradient.
template <class C, class Function, class Get>
__device__ __forceinline__ void pool_backward(const Function& f, const std::uint8_t* which,
                                              const Get& get, float* y) {
  for_each_in_planes<C::kOut, C::kOutHeight, C::kOutWidth>([&](int, int c, int row, int column) {
    float sum = 0.0f;
    CUDP_UNROLL for (int k = 0; k < C::kPool * C::kPool; ++k) {
      const int py = row - k / C::kPool;
      const int px = column - k % C::kPool;
      if (py < 0 || py >= C::kPooledHeight || px < 0 || px >= C::kPooledWidth) continue;
      const int window = (c * C::kPooledHeight + py) * C::kPooledWidth + px;
      if (C::kPool == 1 || which[window] == k) sum += get(c, py, px);
    }
    float& at = y[C::output_at(c, row, column)];
    at = sum * f.derivative(at);
  });
}

}  // namespace cudp::inline CUDP_SIMT
