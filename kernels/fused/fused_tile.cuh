#pragma once
// Dense layers of a tile of examples by a block; fused_mlp.cuh.
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/fused/reduce.cuh"

namespace cudp::inline CUDP_SIMT {

/// n rows of a tile from `first` on, `stride` floats apart.
struct TileRows {
  float* first;
  int stride;
  int n;

  __device__ __forceinline__ TileRows at(int offset) const { return {first + offset, stride, n}; }
  __device__ __forceinline__ float* operator[](int e) const {
    const int at = e * stride;
    return first + at;
  }
  /// The last for those that do not exist: threads work on some of them for nobody.
  __device__ __forceinline__ const float* or_last(int e) const {
    return (*this)[e < n ? e : n - 1];
  }
  /// Calls body(e, i) for columns 0 .. width - 1 of every row.
  template <class Body>
  __device__ __forceinline__ void for_each(int width, const Body& body) const {
    for_each_of_block(n * width, [&](int i) { body(i / width, i % width); });
  }
};

/// A dense layer: weight [out, in] and bias [out] at weight_at and bias_at of the parameters.
struct TileLayer {
  int in, out;
  int weight_at;
  __device__ __forceinline__ int bias_at() const { return weight_at + out * in; }
  __device__ __forceinline__ int end() const { return bias_at() + out; }
};

/// y = f(weight x + bias). A warp takes kTileExamples examples and kWarp / kLanes * kEach outputs:
/// kLanes lanes share the inputs, four at a time.
template <int kEach, class Function>
__device__ __forceinline__ void tile_forward(const TileLayer& l, const float* parameters,
                                             const TileRows& x, const TileRows& y,
                                             const Function& f) {
  constexpr int kLanes = kEach == 1 ? kWarp : 8;
  constexpr int kApart = kWarp / kLanes;  // between the outputs of a lane
  constexpr int kSums = kEach * kTileExamples;
  const float* const weight = parameters + l.weight_at;
  const bool is_aligned = l.in % 4 == 0 && reinterpret_cast<std::uintptr_t>(weight) % 16 == 0;
  const int lane = thread_number() % kWarp;
  const int slice = lane % kLanes;
  const int groups = (x.n + kTileExamples - 1) / kTileExamples;
  const int tasks = groups * ((l.out + kApart * kEach - 1) / (kApart * kEach));
  CUDP_UNROLL_BY(1)
  for (int task = thread_number() / kWarp; task < tasks; task += kFusedThreads / kWarp) {
    const int example = task % groups * kTileExamples;
    const int output = task / groups * (kApart * kEach) + lane / kLanes;
    float sums[kSums];
    clear(sums);
    CUDP_UNROLL_BY(2)
    for (int i = 4 * slice; i < l.in; i += 4 * kLanes) {
      float from[kTileExamples][4];
      CUDP_UNROLL for (int e = 0; e < kTileExamples; ++e) {
        read_row<4>(x.or_last(example + e) + i, from[e]);
      }
      CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
        const int o = output + k * kApart;
        const int at = (o < l.out ? o : 0) * l.in + i;
        const float* const row = weight + at;
        float w[4];
        if (is_aligned) {
          read_row<4>(row, w);
        } else {
          CUDP_UNROLL for (int j = 0; j < 4; ++j) { w[j] = i + j < l.in ? row[j] : 0.0f; }
        }
        CUDP_UNROLL for (int e = 0; e < kTileExamples; ++e) {
          CUDP_UNROLL for (int j = 0; j < 4; ++j) {
            sums[k * kTileExamples + e] += w[j] * from[e][j];
          }
        }
      }
    }
    reduce_scatter<kLanes, kSums>(sums);
    const Kept kept = kept_by<kSums, kLanes>(slice);
    constexpr int kKept = kept_of(kSums, kLanes);
    CUDP_UNROLL for (int i = 0; i < kKept; ++i) {
      const int o = output + (kept.first + i) / kTileExamples * kApart;
      const int e = example + (kept.first + i) % kTileExamples;
      if (i < kept.count && o < l.out && e < y.n)
        y[e][o] = f(sums[i] + parameters[l.bias_at() + o]);
    }
  }
}

/// gradient_x = (weight' gradient) times the function's derivative at x: a thread an input of
/// kTileExamples examples.
template <class Function>
__device__ __forceinline__ void tile_backward(const TileLayer& l, const float* parameters,
                                              const TileRows& x, const TileRows& gradient,
                                              const TileRows& gradient_x, const Function& f) {
  const int groups = (x.n + kTileExamples - 1) / kTileExamples;
  for_each_of_block(groups * l.in, [&](int item) {
    const int i = item % l.in;
    const int example = item / l.in * kTileExamples;
    float sums[kTileExamples];
    clear(sums);
    for (int o = 0; o < l.out; ++o) {
      const float w = parameters[l.weight_at + o * l.in + i];
      CUDP_UNROLL for (int e = 0; e < kTileExamples; ++e) {
        sums[e] += w * gradient.or_last(example + e)[o];
      }
    }
    CUDP_UNROLL for (int e = 0; e < kTileExamples; ++e) {
      if (example + e < x.n) gradient_x[example + e][i] = sums[e] * f.derivative(x[example + e][i]);
    }
  });
}

/// Numbers of a layer that a thread works on at once: two inputs, the bias's 1 among them, of kEach
/// outputs.
template <int kEach>
struct TilePart {
  const TileLayer& layer;
  int inputs[2];
  int output;

  static __device__ __forceinline__ int count(const TileLayer& l) {
    return (l.out + kEach - 1) / kEach * (l.in / 2 + 1);
  }
  __device__ __forceinline__ TilePart(const TileLayer& l, int item) : layer(l) {
    const int half = l.in / 2 + 1;
    inputs[0] = item % half;
    inputs[1] = inputs[0] + half;
    output = item / half * kEach;
  }
  __device__ __forceinline__ bool exists(int i, int k) const {
    return inputs[i] <= layer.in && output + k < layer.out;
  }
  /// The place of a number that exists in the parameters.
  __device__ __forceinline__ int at(int i, int k) const {
    return inputs[i] < layer.in ? layer.weight_at + (output + k) * layer.in + inputs[i]
                                : layer.bias_at() + output + k;
  }
};

/// m and 1 / scale of such numbers, 0 for those that do not exist; nothing without transforms.
template <int kEach, bool transforms>
struct TileTransform {
  float mean[2][kEach];
  float inverse[2][kEach];

  __device__ __forceinline__ TileTransform(const Transform& t, const TilePart<kEach>& part) {
    if constexpr (transforms) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
          const bool exists = part.exists(i, k);
          mean[i][k] = exists ? t.mean[part.at(i, k)] : 0.0f;
          inverse[i][k] = exists ? t.inverse[part.at(i, k)] : 0.0f;
        }
      }
    }
  }
};

/// squares[warp * x.n + e] = the squares that a warp's threads have of row e's w of a layer.
template <int kEach>
__device__ __forceinline__ void tile_squares(const TileLayer& l, const Transform& t,
                                             const TileRows& x, const TileRows& gradient,
                                             float* squares) {
  float own[kMaxTile];
  clear(own);
  for_each_of_block(TilePart<kEach>::count(l), [&](int item) {
    const TilePart<kEach> part(l, item);
    const TileTransform<kEach, true> by(t, part);
    CUDP_UNROLL for (int e = 0; e < kMaxTile; ++e) {
      if (e >= x.n) break;
      float d[kEach];
      read_row<kEach>(gradient[e] + part.output, d);
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const float from = part.inputs[i] <= l.in ? x[e][part.inputs[i]] : 0.0f;
        CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
          const float w = transformed_product(from, d[k], by.mean[i][k], by.inverse[i][k]);
          own[e] += w * w;
        }
      }
    }
  });
  const int warp = thread_number() / kWarp;
  CUDP_UNROLL for (int e = 0; e < kMaxTile; ++e) {
    if (e >= x.n) break;
    const float sum = warp_sum(own[e]);
    if (thread_number() % kWarp == 0) squares[warp * x.n + e] = sum;
  }
}

/// slab = a layer's sum over those rows e of the tile whose bit e of `adding` is set, or is added
/// to what is there. Of x gradient, which has been clipped and is in units; or where gradients are
/// transformed of w, made again of x and the gradient as it is, times scales[e]. Rows are finite,
/// so that no product is above the clipping norm, which is at most 2^21 units.
template <int kEach, bool transforms>
__device__ __forceinline__ void tile_sum(const TileLayer& l, const TileRows& x,
                                         const TileRows& gradient, unsigned adding, bool is_first,
                                         const Transform& t, const float* scales,
                                         std::int32_t* slab) {
  for_each_of_block(TilePart<kEach>::count(l), [&](int item) {
    const TilePart<kEach> part(l, item);
    const TileTransform<kEach, transforms> by(t, part);
    int sums[2][kEach];
    clear(sums[0]);
    clear(sums[1]);
    CUDP_UNROLL_BY(2)
    for (unsigned left = adding; left != 0; left &= left - 1) {
      const int e = __ffs(static_cast<int>(left)) - 1;
      float d[kEach];
      read_row<kEach>(gradient[e] + part.output, d);
      const float from[2] = {x[e][part.inputs[0]], x[e][part.inputs[1]]};
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
          if constexpr (transforms) {
            const float w = transformed_product(from[i], d[k], by.mean[i][k], by.inverse[i][k]);
            sums[i][k] += rounded_product(scales[e], w);
          } else {
            sums[i][k] += rounded_product(from[i], d[k]);
          }
        }
      }
    }
    CUDP_UNROLL for (int i = 0; i < 2; ++i) {
      CUDP_UNROLL for (int k = 0; k < kEach; ++k) {
        if (!part.exists(i, k)) continue;
        std::int32_t& to = slab[part.at(i, k)];
        to = is_first ? sums[i][k] : to + sums[i][k];
      }
    }
  });
}

}  // namespace cudp::inline CUDP_SIMT
