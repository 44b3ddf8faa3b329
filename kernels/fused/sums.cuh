#pragma once
// Sum of clipped gradients in the fused kernel: an example's gradient, its norm, its factors, and a
// thread's part of the block's sum. The norm is of exactly the numbers that are added, in an order
// that depends on the example alone.
//
// With coordinate-wise clipping (contribution/coordinates_math.hpp), w = (g - m) / scale replaces
// each gradient number g, in the norm and in the sum.
#include "kernels/common/fixed_point.cuh"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/backward.cuh"

namespace cudp::fused::inline CUDP_SIMT {

/// Coordinate-wise clipping: returns w = (x y - mean) / scale for one parameter, whose gradient is
/// the product x y. parameter: index of the parameter; if it is below 0, there is none, and the
/// result is 0. t: arrays with the mean and 1 / scale of each parameter.
__device__ __forceinline__ float transformed(const Transform& t, float x, float y, int parameter) {
  if (parameter < 0) return 0.0f;
  return ScalarLanes::fma(x, y, -t.mean[parameter]) * t.inverse[parameter];
}

/// Coordinate-wise clipping: replaces each number g in `gradient` with w = (g * factor - mean) /
/// scale, where g * factor is the gradient of one parameter. unit: the part of a convolution's
/// weights to which the numbers belong. i: number of the convolution. P: the kernel's Plan for one
/// network. t: arrays with the mean and 1 / scale of each parameter.
template <class P, int i>
__device__ __forceinline__ void transform_unit(const Transform& t, const Unit<P, i>& unit,
                                               float factor,
                                               float (&gradient)[Unit<P, i>::kNumbers]) {
  const Lane l;
  CUDP_UNROLL for (int n = 0; n < Unit<P, i>::kNumbers; ++n) {
    gradient[n] = transformed(t, gradient[n], factor, unit.parameter(l, n));
  }
}

/// Calls body(k, o, in) for each block of 8 outputs x 4 inputs of the hidden layer's weights whose
/// gradients this thread adds up. k: index of the block's first number among the thread's numbers
/// for that layer. o: first output. in: first input. P: the kernel's Plan for one network.
template <class P, class Body>
__device__ __forceinline__ void for_each_hidden_block(const Body& body) {
  constexpr int kBlocks = P::kDense.blocks(), kAcross = P::kDense.in / 4;
  for_constants<P::kDense.owned()>([&](auto n) {
    const int block = thread_number() + n * kThreads;
    if (kBlocks % kThreads == 0 || block < kBlocks)
      body(32 * n, block / kAcross * 8, block % kAcross * 4);
  });
}
/// Returns four consecutive inputs of the hidden layer, from input `in` on, for example e. P: the
/// kernel's Plan for one network. s: the block's shared memory.
template <class P>
__device__ __forceinline__ Four hidden_inputs(Space<P>& s, int e, int in) {
  const u32* const high = plane_of<u32>(s, P::layout().hidden_in[0], e);
  const u32* const low = plane_of<u32>(s, P::layout().hidden_in[1], e);
  const Two a = numbers_at<P::kAll>(high, low, in / 2);
  const Two b = numbers_at<P::kAll>(high, low, in / 2 + 1);
  return {{a.x, a.y, b.x, b.y}};
}

/// Calls body(k, small) for each of the "small" partial derivatives that this thread computes:
/// those with respect to the biases and the last layer's weights, which are divided among all
/// threads. k: index among the thread's own ones. small: the parameter, and the two numbers whose
/// product is the derivative (P::Small).
template <class P, class Body>
__device__ __forceinline__ void for_each_small(const Body& body) {
  for_constants<P::kSmallOwned>([&](auto k) {
    const int n = thread_number() + k * kThreads;
    if (n < P::kSmall) body(k, P::small_number(n));
  });
}

/// A thread's part of the block's sum of gradients. Also keeps the gradient of a convolution whose
/// warps compute one example each (has_example_owners) from the norm to the sum. P: the kernel's
/// Plan for one network.
template <class P>
struct Sums {
  static constexpr int E = P::kExamples;

  template <int i>
  struct Kept {
    static constexpr ConvStage c = P::stage(i);
    static constexpr int kOwned = c.has_example_owners ? c.owned(E) : 1;
    float number[kOwned][c.has_example_owners ? Unit<P, i>::kNumbers : 1];
  };
  Kept<0> kept;  // gradients of the other convolutions are computed twice
  u32 sum[P::kSums];
  u32 added = 0;      ///< number of the block's examples that were added
  u32 added_own = 0;  ///< how many of the added examples had the index own_example() in their group

  __device__ __forceinline__ Sums() { clear(sum); }

  /// Returns the index, among the examples that the block processes at once, of the one whose
  /// gradient this warp computes. Only for convolutions with has_example_owners.
  static __device__ __forceinline__ int own_example() { return warp_number() / (kWarps / E); }

  /// Calls body(q, number, unit) for each unit of convolution i's weight gradient that this warp
  /// computes. q: index among the warp's units. number: index among all units of the convolution.
  template <int i, class Body>
  static __device__ __forceinline__ void for_each_unit(const Body& body) {
    constexpr int kOwners = P::stage(i).owners(E), kUnits = P::stage(i).units;
    const int first = warp_number() % kOwners;
    for_constants<P::stage(i).owned(E)>([&](auto q) {
      const int unit = first + q * kOwners;
      if (kUnits % kOwners == 0 || unit < kUnits) body(q, unit, Unit<P, i>(unit));
    });
  }

  /// Returns the factor by which the numbers that Unit::make() computes for convolution i are
  /// multiplied to get the gradient of example e. It removes the scaling of the example's gradients
  /// and, for the first layer, that of the stored input. a: arguments of the launch.
  template <int i>
  static __device__ __forceinline__ float factor_of(const FusedSum& a, Space<P>& s, int e) {
    const float inverse = plane_of<float>(s, P::layout().vector, e)[P::kVector.inverse];
    return i == 0 && P::kInput == Input::bytes ? inverse * input_factor<P>(a) : inverse;
  }

  /// Adds up the squares of convolution i's partial derivatives, for the gradient norms of the
  /// examples that the block processes at once. Writes to each example's partial sums (NormParts)
  /// one sum per unit of the weights, and one sum for the biases. The gradients of the biases are
  /// computed here and written to the example's vector (bias_gradient()). With coordinate-wise
  /// clipping the squares of the weights are those of w = (g - m) / scale, and square_transformed()
  /// writes the sums for the biases instead. a: arguments of the launch. s: the block's shared
  /// memory.
  template <int i>
  __device__ __forceinline__ void square_units(const FusedSum& a, Space<P>& s) {
    constexpr ConvStage c = P::stage(i);
    constexpr int kNumbers = Unit<P, i>::kNumbers;
    const int lane = thread_number() % kWarp;
    const auto parts = [&](int e) {
      return plane_of<float>(s, P::layout().norm_parts, e) + P::kNormParts.first[i];
    };
    const auto square = [&](int e, int number, const Unit<P, i>& unit, float(&d)[kNumbers]) {
      unit.make(s, e, d);
      if constexpr (P::kTransforms)
        transform_unit<P, i>(a.transform, unit, factor_of<i>(a, s, e), d);
      float sum = 0.0f;
      CUDP_UNROLL for (int n = 0; n < kNumbers; ++n) { sum = ScalarLanes::fma(d[n], d[n], sum); }
      sum = warp_sum(sum);
      if (lane == 0) parts(e)[number] = sum;
    };
    if constexpr (c.has_example_owners) {
      static_assert(i == 0);
      for_each_unit<i>([&](int q, int number, const Unit<P, i>& unit) {
        square(own_example(), number, unit, kept.number[q]);
      });
    } else {
      for_each_unit<i>([&](int, int number, const Unit<P, i>& unit) {
        CUDP_UNROLL for (int e = 0; e < E; ++e) {
          float d[kNumbers];
          square(e, number, unit, d);
        }
      });
    }
    const int e = kWarps - 1 - warp_number();
    if (e < E) {
      const float sum = warp_sum(bias_gradient<P, i>(s, e));
      if (!P::kTransforms && lane == 0) parts(e)[c.units] = sum;
    }
  }

  /// Coordinate-wise clipping: writes, for each example, the sums of squares of w = (g - m) / scale
  /// for the dense layers and the biases to the partial sums of its norm (NormParts), one per warp
  /// and layer. g is a partial derivative. s: the block's shared memory.
  __device__ __forceinline__ void square_transformed(const FusedSum& a, Space<P>& s) {
    const int lane = thread_number() % kWarp, warp = warp_number();
    for (int e = 0; e < E; ++e) {
      const float* const vector = plane_of<float>(s, P::layout().vector, e);
      float* const parts = plane_of<float>(s, P::layout().norm_parts, e);
      const float inverse = vector[P::kVector.inverse];
      float square = 0.0f;
      for_each_transformed(a, s, e, [&](int, float w) { square = ScalarLanes::fma(w, w, square); });
      square = warp_sum(square);
      if (lane == 0) parts[P::kNormParts.hidden + warp] = square;
      float squares[P::kLayers];
      clear(squares);
      for_each_small<P>([&](int, const typename P::Small& n) {
        const float w = transformed(a.transform, vector[n.a] * inverse, vector[n.b], n.parameter);
        CUDP_UNROLL for (int layer = 0; layer < P::kLayers; ++layer) {
          squares[layer] += layer == n.layer ? w * w : 0.0f;
        }
      });
      CUDP_UNROLL for (int layer = 0; layer < P::kLayers; ++layer) {
        const float sum = warp_sum(squares[layer]);
        if (lane == 0) parts[P::kNormParts.small + layer * kWarps + warp] = sum;
      }
    }
  }

  /// Calls body(k, w) for each number w = (g - m) / scale of the hidden layer's weights that this
  /// thread adds up, with g the gradient of the weight for example e. k: index among the thread's
  /// numbers for that layer. a: arguments of the launch.
  template <class Body>
  static __device__ __forceinline__ void for_each_transformed(const FusedSum& a, Space<P>& s, int e,
                                                              const Body& body) {
    constexpr DenseStages c = P::kDense;
    const float* const vector = plane_of<float>(s, P::layout().vector, e);
    const float inverse = vector[P::kVector.inverse];
    for_each_hidden_block<P>([&](int first, int o, int in) {
      const Four x = hidden_inputs(s, e, in);
      CUDP_UNROLL for (int r = 0; r < 8; ++r) {
        const float dy = vector[P::kVector.gradient_hidden + o + r] * inverse;
        CUDP_UNROLL for (int k = 0; k < 4; ++k) {
          body(first + 4 * r + k, transformed(a.transform, x.v[k], dy, c.parameter(o + r, in + k)));
        }
      }
    });
  }

  /// Computes the squared norm of each layer's gradient of example e. All lanes of the warp get the
  /// same numbers. a: arguments of the launch. squares: result, one number per layer.
  static __device__ __forceinline__ void layer_squares(const FusedSum& a, Space<P>& s, int e,
                                                       float (&squares)[P::kLayers]) {
    const int lane = thread_number() % kWarp;
    const float* const parts = plane_of<float>(s, P::layout().norm_parts, e);
    const float* const vector = plane_of<float>(s, P::layout().vector, e);
    const auto sum_of_parts = [&](int first, int count) {
      float sum = 0.0f;
      for (int k = lane; k < count; k += kWarp) sum += parts[first + k];
      return warp_sum(sum);
    };
    const float inverse = vector[P::kVector.inverse];
    for_constants<P::kConvolutions>([&](auto stage) {
      constexpr int i = stage;
      if constexpr (P::kTransforms) {
        squares[i] = sum_of_parts(P::kNormParts.first[i], P::kNormParts.count[i]) +
                     sum_of_parts(P::kNormParts.small + i * kWarps, kWarps);
      } else {
        const float factor = i == 0 ? input_factor<P>(a) : 1.0f;
        const float units = sum_of_parts(P::kNormParts.first[i], P::stage(i).units);
        const float bias = parts[P::kNormParts.first[i] + P::stage(i).units];
        squares[i] = (units * factor * factor + bias) * inverse * inverse;
      }
    });
    constexpr int kHidden = P::kConvolutions, kLast = kHidden + 1;
    if constexpr (P::kTransforms) {
      squares[kHidden] = sum_of_parts(P::kNormParts.hidden, kWarps) +
                         sum_of_parts(P::kNormParts.small + kHidden * kWarps, kWarps);
      squares[kLast] = sum_of_parts(P::kNormParts.small + kLast * kWarps, kWarps);
    } else {
      const float* const q = vector + P::kVector.squares;
      squares[kHidden] = dense_squared_norm(q[0], q[1], P::kDense.hidden) * inverse * inverse;
      squares[kLast] = dense_squared_norm(q[2], q[3], P::kDense.outputs) * inverse * inverse;
    }
  }

  /// Computes norm and factors of example e, decides whether it is added, and reports on it. A warp
  /// calls it. prefetched: index of the example in the block's PrefetchedCandidates. a: arguments
  /// of the launch. group: the examples that the block processes at once.
  static __device__ __forceinline__ void decide(const FusedSum& a, Space<P>& s, const Group& group,
                                                int e, int prefetched) {
    const bool first_lane = thread_number() % kWarp == 0;
    float squares[P::kLayers], factors[P::kLayers];
    layer_squares(a, s, e, squares);
    const FusedTask task = P::kTransforms ? FusedTask::clip : a.task;
    const bool adds = decide_example(
        a, task, group.has(e), [&] { return group.number(a, e); }, P::kLayers, squares, factors,
        [&](float, float square) {
          return acceptance_factor(*a.accept.rule, s.candidates.seen[prefetched],
                                   s.candidates.word[prefetched], square);
        });
    if (task == FusedTask::norms) return;
    if (!first_lane) return;
    s.adds[e] = adds ? 1 : 0;
    const float* const vector = plane_of<float>(s, P::layout().vector, e);
    const float unit = a.sum_scale->inverse_grid * vector[P::kVector.weight] *
                       (P::kTransforms ? 1.0f : vector[P::kVector.inverse]);
    CUDP_UNROLL for (int layer = 0; layer < P::kLayers; ++layer) {
      s.scale[e][layer] = factors[layer] * unit;
    }
    if (group.has(e))
      report_example(a, group.at(e), vector[P::kVector.loss], P::kLayers, squares, factors);
  }

  // An example adds the numbers of its gradient, times s.scale[e][layer], rounded to integers.
  // s.scale is the layer's clip factor times the class weight, which is at most 1, divided by the
  // grid and by the power of two that scales the example's gradients. The numbers are finite, and
  // the norm was computed from them. So no product exceeds the clipping norm, which is at most 2^21
  // grid steps. store() subtracts the constant that biased_product() adds.

  template <int i>
  __device__ __forceinline__ void add_units(const FusedSum& a, Space<P>& s) {
    constexpr int kNumbers = Unit<P, i>::kNumbers;
    const float factor = !P::kTransforms && i == 0 ? input_factor<P>(a) : 1.0f;
    if constexpr (P::stage(i).has_example_owners) {
      const int e = own_example();
      if (s.adds[e] == 0) return;
      const float scale = s.scale[e][i] * factor;
      for_each_unit<i>([&](int q, int, const Unit<P, i>&) {
        CUDP_UNROLL for (int n = 0; n < kNumbers; ++n) {
          sum[P::first_sum(i) + q * kNumbers + n] += biased_product(kept.number[q][n], scale);
        }
      });
    } else {
      for_each_unit<i>([&](int q, int, const Unit<P, i>& unit) {
        CUDP_UNROLL for (int e = 0; e < E; ++e) {
          if (s.adds[e] == 0) continue;
          const float scale = s.scale[e][i] * factor;
          float d[kNumbers];
          unit.make(s, e, d);
          if constexpr (P::kTransforms)
            transform_unit<P, i>(a.transform, unit, factor_of<i>(a, s, e), d);
          CUDP_UNROLL for (int n = 0; n < kNumbers; ++n) {
            sum[P::first_sum(i) + q * kNumbers + n] += biased_product(d[n], scale);
          }
        }
      });
    }
  }

  __device__ __forceinline__ void add_dense(const FusedSum& a, Space<P>& s, int e) {
    const float* const vector = plane_of<float>(s, P::layout().vector, e);
    const float scale = s.scale[e][P::kConvolutions];
    if constexpr (P::kTransforms) {
      for_each_transformed(
          a, s, e, [&](int k, float w) { sum[P::kHiddenSums + k] += biased_product(w, scale); });
    } else {
      for_each_hidden_block<P>([&](int first, int o, int in) {
        Four x = hidden_inputs(s, e, in);
        CUDP_UNROLL for (int k = 0; k < 4; ++k) { x.v[k] *= scale; }
        CUDP_UNROLL for (int r = 0; r < 8; r += 4) {
          const Four dy = load_four(vector + P::kVector.gradient_hidden + o + r);
          CUDP_UNROLL for (int n = 0; n < 4; ++n) {
            CUDP_UNROLL for (int k = 0; k < 4; ++k) {
              sum[P::kHiddenSums + first + 4 * (r + n) + k] += biased_product(x.v[k], dy.v[n]);
            }
          }
        }
      });
    }
    const float inverse = vector[P::kVector.inverse];
    for_each_small<P>([&](int k, const typename P::Small& n) {
      const float own = s.scale[e][n.layer];
      if constexpr (P::kTransforms)
        sum[P::kSmallSums + k] += biased_product(
            transformed(a.transform, vector[n.a] * inverse, vector[n.b], n.parameter), own);
      else
        sum[P::kSmallSums + k] += biased_product(vector[n.a] * own, vector[n.b]);
    });
  }

  __device__ __forceinline__ void add(const FusedSum& a, Space<P>& s) {
    for_constants<P::kConvolutions>([&](auto stage) { add_units<stage>(a, s); });
    for (int e = 0; e < E; ++e) {
      if (s.adds[e] == 0) continue;
      ++added;
      add_dense(a, s, e);
    }
    added_own += s.adds[own_example()] != 0 ? 1 : 0;
  }

  /// Writes the block's sums to `slab` in global memory, in the order of the parameters. Copies of
  /// the same sum in different warps are first added up in shared memory.
  __device__ __forceinline__ void store(Space<P>& s, std::int32_t* slab) const {
    constexpr int kParameters = P::kStages.parameters;
    constexpr DenseStages c = P::kDense;
    static_assert(sizeof(Space<P>) >= 4 * std::size_t{kParameters});
    auto* const all = reinterpret_cast<u32*>(&s);
    __syncthreads();
    for (int j = thread_number(); j < kParameters; j += kThreads) all[j] = 0;
    __syncthreads();
    const Lane l;
    for_constants<P::kConvolutions>([&](auto stage) {
      constexpr int i = stage;
      constexpr int kNumbers = Unit<P, i>::kNumbers;
      const u32 terms = P::stage(i).has_example_owners ? added_own : added;
      for_each_unit<i>([&](int q, int, const Unit<P, i>& unit) {
        CUDP_UNROLL for (int n = 0; n < kNumbers; ++n) {
          const int at = unit.parameter(l, n);
          const u32 v = sum[P::first_sum(i) + q * kNumbers + n] - terms * kToUnitsBits;
          if (at >= 0) atomicAdd(all + at, v);
        }
      });
    });
    for_each_hidden_block<P>([&](int first, int o, int in) {
      CUDP_UNROLL for (int k = 0; k < 32; ++k) {
        all[c.parameter(o + k / 4, in + k % 4)] =
            sum[P::kHiddenSums + first + k] - added * kToUnitsBits;
      }
    });
    for_each_small<P>([&](int k, const typename P::Small& n) {
      all[n.parameter] = sum[P::kSmallSums + k] - added * kToUnitsBits;
    });
    __syncthreads();
    for (int j = thread_number(); j < kParameters; j += kThreads)
      slab[j] = static_cast<std::int32_t>(all[j]);
  }
};

}  // namespace cudp::fused::inline CUDP_SIMT
