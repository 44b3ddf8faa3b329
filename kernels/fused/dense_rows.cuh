#pragma once
// Fused training step of networks of dense layers: linear models, and networks with up to four
// hidden layers of any widths (dense_plan.hpp). A block processes a tile of examples, whose
// features and activations are rows of shared memory.
//
// Tensor cores compute the products of the forward and the backward pass, 16 examples at a time.
// Weights are read from the parameters. Each operand is a sum of two TF32 numbers (split_tf32), so
// features may have any size. No weight gradient of a single example is formed: a layer's squared
// norm is (|x|^2 + 1) |dy|^2 (dense_squared_norm), computed from the same float32 numbers x and dy
// whose products are added later. Once the clip factors are known, a thread adds the tile's
// products x dy, as integers, for a few weights in registers. It writes the sums to the block's
// slab, an array of partial sums with one number per parameter.
//
// The size of a network is limited by the slabs (kFusedParameters), and by shared memory, which
// must hold the rows of kTileExamples examples. Examples per tile (at most 32) on three GPUs with
// their shared memory per block:
//
//   network                     | H200, 227 KB | A100, 163 KB | Ada, 99 KB
//   logistic, 124 features      |           32 |           32 |         32
//   10 classes, 784 features    |           32 |           32 |         25
//   10 classes, 3,969 features  |           13 |            9 |          6
//   60 -> 1000 -> 10 (DP-PCA)   |           25 |           18 |         11
//   60 -> 256 -> 128 -> 10      |           32 |           32 |         22
//
// Largest number of features of a model without hidden layers:
//
//   one output                  |       14,479 |       10,383 |      6,287
//   10 outputs                  |        7,999 |        7,999 |      6,143
//
// The model mlp on 784 features has 795,010 parameters. Its slabs would have 420 MB, which would be
// written and read for every micro-batch. So it is computed layer by layer
// (runtime/device/cuda/layer_wise.hpp).
//
// With coordinate-wise clipping (contribution/coordinates_math.hpp), every number w = (x dy - m) /
// scale is computed twice, for the norm and for the sum, by one function (transformed_product).
#include <cstdint>

#include "kernels/common/coded_rows.cuh"
#include "kernels/common/dependent.cuh"
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/tensor_core.cuh"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/fused/block.cuh"
#include "kernels/layers/loss_math.hpp"

// Offsets in shared memory and in the parameters are computed in 32 bits. They are below 2^18, so
// no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Arrays of a tile's n examples in shared memory: the array of example e begins at first + e *
/// stride.
struct TileRows {
  float* first;
  int stride;
  int n;

  __device__ __forceinline__ TileRows at(int offset) const { return {first + offset, stride, n}; }
  __device__ __forceinline__ float* operator[](int e) const { return first + e * stride; }
  /// Returns example e's array, or the last example's if e >= n (its results are not stored).
  __device__ __forceinline__ const float* or_last(int e) const { return (*this)[min(e, n - 1)]; }
  /// Calls body(e, i) for every example e and every i with begin <= i < end. The calls are
  /// distributed over the block's threads.
  template <class Body>
  __device__ __forceinline__ void for_each(int begin, int end, const Body& body) const {
    const int width = end - begin;
    for (int i = thread_number(); i < n * width; i += kThreads) body(i / width, begin + i % width);
  }
  /// Calls body(e, row) for every example e of the tile; `row` is the example's array in shared
  /// memory. One warp calls it for one example, with all its lanes.
  template <class Body>
  __device__ __forceinline__ void for_each_row(const Body& body) const {
    for (int e = warp_number(); e < n; e += kWarps) body(e, (*this)[e]);
  }
};

/// A dense layer with the parameters of its network.
struct LayerWeights : DenseLayer {
  const float* parameters;

  /// Returns whether the weights of an output are aligned for of_output() to load inputs i .. i + 3
  /// with one instruction, for every i that is a multiple of four.
  __device__ __forceinline__ bool is_aligned() const {
    return in % 4 == 0 && reinterpret_cast<std::uintptr_t>(parameters + weight_at) % kChunk == 0;
  }
  /// Returns the weights of output o for inputs i .. i + 3; 0 for inputs that the layer does not
  /// have. If o >= out, returns those of the last output. aligned: result of is_aligned().
  __device__ __forceinline__ Four of_output(int o, int i, bool aligned) const {
    const float* const from = parameters + weight_at + min(o, out - 1) * in + i;
    Four w{};
    if (aligned && i < in) return load_four(from);
    CUDP_UNROLL for (int k = 0; k < 4; ++k) { w.v[k] = i + k < in ? from[k] : 0.0f; }
    return w;
  }
  /// Returns the weights of input i for outputs o .. o + 3; 0 for outputs that the layer does not
  /// have.
  __device__ __forceinline__ Four of_input(int i, int o) const {
    Four w{};
    CUDP_UNROLL for (int k = 0; k < 4; ++k) {
      w.v[k] = o + k < out ? parameters[weight_at + (o + k) * in + min(i, in - 1)] : 0.0f;
    }
    return w;
  }
};

/// Four consecutive summands of a matrix product, each split into two TF32 numbers, as operands of
/// mma_tf32, which adds 8 summands at a time. The lane with index t in its group of four lanes has
/// summands 4 t .. 4 t + 3 of every 16. It passes the first two as summands t and t + 4 of one
/// product of 8 summands, and the last two as summands t and t + 4 of the next. Both operands have
/// this order, so the sum is that of the right products.
struct SplitFour {
  SplitTf32 v[4];
  __device__ __forceinline__ explicit SplitFour(const Four& x) {
    CUDP_UNROLL for (int k = 0; k < 4; ++k) { v[k] = split_tf32(x.v[k]); }
  }
};

/// Multiplies a matrix with the array x[e] of each example e of a tile. The sum over k < terms is
/// computed in `parts` parts, each a range of k. Calls store(e, o, part, sum) for every example e,
/// output o and part, with sum = sum over the part's k of weight(o, k) x[e][k]. The code reads the
/// matrix in fours: weight(o, k) returns elements k .. k + 3 of row o, with 0 for elements from
/// `terms` on. A warp computes 16 examples, 8 kTiles outputs and one part at once. The order in
/// which a sum is added depends on `terms` and `parts` alone. Weight, Store: types of the functions
/// weight() and store().
template <int kTiles, class Weight, class Store>
__device__ __forceinline__ void tile_product(const TileRows& x, int terms, int outputs, int parts,
                                             const Weight& weight, const Store& store) {
  const Lane l;
  const int blocks = quotient_up(outputs, 8 * kTiles);
  const int steps = quotient_up(terms, 16), each = quotient_up(steps, parts);
  const int items = blocks * parts * quotient_up(x.n, 16);
  CUDP_UNROLL_BY(1)
  for (int item = warp_number(); item < items; item += kWarps) {
    const int output = item % blocks * 8 * kTiles, part = item / blocks % parts;
    const int example = item / (blocks * parts) * 16 + l.g;
    const float* const top_row = x.or_last(example) + 4 * l.t;
    const float* const bottom_row = x.or_last(example + 8) + 4 * l.t;
    float d[kTiles][4];
    CUDP_UNROLL for (int n = 0; n < kTiles; ++n) { clear(d[n]); }
    CUDP_UNROLL_BY(2)
    for (int step = part * each; step < min(steps, (part + 1) * each); ++step) {
      Four w[kTiles];
      CUDP_UNROLL for (int n = 0; n < kTiles; ++n) {
        w[n] = weight(output + 8 * n + l.g, 16 * step + 4 * l.t);
      }
      const SplitFour top(load_four(top_row + 16 * step)),
          bottom(load_four(bottom_row + 16 * step));
      CUDP_UNROLL for (int n = 0; n < kTiles; ++n) {
        const SplitFour b(w[n]);
        CUDP_UNROLL for (int k = 0; k < 4; k += 2) {
          const float high[4] = {top.v[k].high, bottom.v[k].high, top.v[k + 1].high,
                                 bottom.v[k + 1].high};
          const float low[4] = {top.v[k].low, bottom.v[k].low, top.v[k + 1].low,
                                bottom.v[k + 1].low};
          const float b_high[2] = {b.v[k].high, b.v[k + 1].high};
          const float b_low[2] = {b.v[k].low, b.v[k + 1].low};
          mma_tf32(d[n], d[n] + 2, low, b_high);
          mma_tf32(d[n], d[n] + 2, high, b_low);
          mma_tf32(d[n], d[n] + 2, high, b_high);
        }
      }
    }
    CUDP_UNROLL for (int n = 0; n < 4 * kTiles; ++n) {
      const int e = example + n % 4 / 2 * 8, o = output + n / 4 * 8 + 2 * l.t + n % 2;
      if (e < x.n && o < outputs) store(e, o, part, d[n / 4][n % 4]);
    }
  }
}

/// Computes y = f(weight x + bias) for the arrays x of a tile, with f the layer's activation
/// function. partial: memory for partial sums, used if dense_parts() > 1. l: the layer's weights
/// and bias. 8 kTiles: number of outputs that a warp computes at once. Function: type of the
/// function f.
template <int kTiles, class Function>
__device__ __forceinline__ void tile_forward(const LayerWeights& l, const TileRows& x,
                                             const TileRows& partial, const TileRows& y,
                                             const Function& f) {
  const bool aligned = l.is_aligned();
  // A layer for which a warp computes 32 outputs at once (kTiles = 4) is so wide that dense_parts()
  // is 1.
  const int parts = kTiles > 2 ? 1 : dense_parts(l.in, l.out);
  const float* const bias = l.parameters + l.bias_at();
  tile_product<kTiles>(
      x, l.in, l.out, parts, [&](int o, int k) { return l.of_output(o, k, aligned); },
      [&](int e, int o, int part, float sum) {
        if (parts == 1)
          y[e][o] = f(sum + bias[o]);
        else
          partial[e][part * l.out + o] = sum;
      });
  __syncthreads();
  if (parts == 1) return;
  y.for_each(0, l.out, [&](int e, int o) {
    float z = bias[o];
    for (int part = 0; part < parts; ++part) z += partial[e][part * l.out + o];
    y[e][o] = f(z);
  });
  __syncthreads();
}

/// Part of a dense layer's gradient that a thread computes at once: the weights between kIn inputs
/// (`input`, input + apart, ...) and kOut outputs (from `output` on). The biases are the weights of
/// one more input, number layer.in, which is always 1. Neighbouring threads have neighbouring
/// inputs. kIn_, kOut_: kIn and kOut.
template <int kIn_, int kOut_>
struct TilePart {
  static constexpr int kIn = kIn_, kOut = kOut_;
  const DenseLayer& layer;
  int input, apart, output;

  static __device__ __forceinline__ int count(const DenseLayer& l) {
    return quotient_up(l.out, kOut) * quotient_up(l.in + 1, kIn);
  }
  __device__ __forceinline__ TilePart(const DenseLayer& l, int item)
      : layer(l), apart(quotient_up(l.in + 1, kIn)) {
    input = item % apart;
    output = item / apart * kOut;
  }
  /// Calls body(i, k, parameter) for input number i and output number k of the part, except those
  /// that the layer does not have. parameter: index of their weight or bias among the network's
  /// parameters.
  template <class Body>
  __device__ __forceinline__ void for_each(const Body& body) const {
    CUDP_UNROLL for (int i = 0; i < kIn; ++i) {
      const int in = input + i * apart;
      const bool is_weight = in < layer.in;
      const int end = in > layer.in ? 0 : layer.out - output;
      const int at =
          is_weight ? layer.weight_at + output * layer.in + in : layer.bias_at() + output;
      const int next = is_weight ? layer.in : 1;
      CUDP_UNROLL for (int k = 0; k < kOut; ++k) {
        if (k < end) body(i, k, at + k * next);
      }
    }
  }
};

/// The inputs x and the output gradients dy of a part for example e: the gradient of the weight
/// between input i and output k is x[i] dy[k]. x and dy also have elements for inputs and outputs
/// that the layer does not have; the products of these elements are not used. Part: a TilePart.
template <class Part>
struct PartTerms {
  float x[Part::kIn], dy[Part::kOut];

  __device__ __forceinline__ PartTerms(const Part& part, const TileRows& rows, int e) {
    const float* const row = rows[e] + part.layer.gradient + part.output;
    if constexpr (Part::kOut == 1) {
      dy[0] = *row;
    } else {
      CUDP_UNROLL for (int k = 0; k < Part::kOut; k += 4) {
        const Four four = load_four(row + k);
        CUDP_UNROLL for (int n = 0; n < 4; ++n) { dy[k + n] = four.v[n]; }
      }
    }
    const float* const in = rows[e] + part.layer.input + part.input;
    CUDP_UNROLL for (int i = 0; i < Part::kIn; ++i) { x[i] = in[i * part.apart]; }
  }
  /// Calls body(i, k) for every input number i and output number k of the part.
  template <class Body>
  static __device__ __forceinline__ void for_each(const Body& body) {
    CUDP_UNROLL for (int i = 0; i < Part::kIn; ++i) {
      CUDP_UNROLL for (int k = 0; k < Part::kOut; ++k) { body(i, k); }
    }
  }
};

/// Coordinate-wise clipping: m (`mean`) and 1 / scale (`inverse`) of the weight between each input
/// and output of a part; 0 if the layer has no such input or output. Part: a TilePart.
template <class Part>
struct TileTransform {
  float mean[Part::kIn][Part::kOut], inverse[Part::kIn][Part::kOut];

  __device__ __forceinline__ TileTransform(const Transform& t, const Part& part) {
    CUDP_UNROLL for (int i = 0; i < Part::kIn; ++i) {
      clear(mean[i]);
      clear(inverse[i]);
    }
    part.for_each([&](int i, int k, int parameter) {
      mean[i][k] = t.mean[parameter];
      inverse[i][k] = t.inverse[parameter];
    });
  }
  __device__ __forceinline__ float product(int i, int k, float x, float dy) const {
    return transformed_product(x, dy, mean[i][k], inverse[i][k]);
  }
};
struct NoTransform {};

/// Coordinate-wise clipping: computes, for each example e of the tile, the sum of w^2 over the
/// layer's parameters, with w = (x dy - m) / scale. Writes one partial sum per warp, to
/// squares[warp * x.n + e]. Part: the TilePart that a thread computes at once. l: the layer. t:
/// arrays with m and 1 / scale of each parameter.
template <class Part>
__device__ __forceinline__ void tile_squares(const DenseLayer& l, const Transform& t,
                                             const TileRows& x, float* squares) {
  float own[kMaxTile];
  clear(own);
  for (int item = thread_number(); item < Part::count(l); item += kThreads) {
    const Part part(l, item);
    const TileTransform<Part> by(t, part);
    CUDP_UNROLL for (int e = 0; e < kMaxTile; ++e) {
      if (e >= x.n) break;
      const PartTerms<Part> v(part, x, e);
      v.for_each([&](int i, int k) {
        const float w = by.product(i, k, v.x[i], v.dy[k]);
        own[e] += w * w;
      });
    }
  }
  const int warp = warp_number();
  CUDP_UNROLL for (int e = 0; e < kMaxTile; ++e) {
    if (e >= x.n) break;
    const float sum = warp_sum(own[e]);
    if (thread_number() % kWarp == 0) squares[warp * x.n + e] = sum;
  }
}

/// Adds up a layer's gradients x dy of those examples e for which bit e of `adding` is set, as
/// integers that count multiples of the sum's grid. Writes the sums to slab [parameters] if
/// is_first, otherwise adds them to it. dy must have been multiplied by the clip factor and divided
/// by the grid. With transforms (coordinate-wise clipping), dy is not scaled, and scales[e] times w
/// = (x dy - m) / scale is added. Requires finite gradients, so that no product exceeds the
/// clipping norm, which is at most 2^21 multiples of the grid. Part: the TilePart that a thread
/// computes at once. l: the layer. t: arrays with m and 1 / scale of each parameter, used if
/// `transforms`.
template <class Part, bool transforms>
__device__ __forceinline__ void tile_sum(const DenseLayer& l, const TileRows& x, unsigned adding,
                                         bool is_first, const Transform& t, const float* scales,
                                         std::int32_t* slab) {
  const u32 bias = static_cast<u32>(__popc(adding)) * kToUnitsBits;
  CUDP_UNROLL_BY(1)
  for (int item = thread_number(); item < Part::count(l); item += kThreads) {
    const Part part(l, item);
    u32 sums[Part::kIn][Part::kOut];
    CUDP_UNROLL for (int i = 0; i < Part::kIn; ++i) { clear(sums[i]); }
    const auto by = [&] {
      if constexpr (transforms)
        return TileTransform<Part>(t, part);
      else
        return NoTransform();
    }();
    const auto units = [&](const PartTerms<Part>& v, int e, int i, int k) {
      if constexpr (transforms)
        return biased_product(scales[e], by.product(i, k, v.x[i], v.dy[k]));
      else
        return biased_product(v.x[i], v.dy[k]);
    };
    // Two examples per iteration, because the compiler can add three integers (the sum and two
    // products) with one instruction.
    for (unsigned left = adding; left != 0;) {
      const int e = __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      const PartTerms<Part> v(part, x, e);
      if (left == 0) {
        v.for_each([&](int i, int k) { sums[i][k] += units(v, e, i, k); });
      } else {
        const int next = __ffs(static_cast<int>(left)) - 1;
        left &= left - 1;
        const PartTerms<Part> w(part, x, next);
        v.for_each([&](int i, int k) { sums[i][k] += units(v, e, i, k) + units(w, next, i, k); });
      }
    }
    part.for_each([&](int i, int k, int parameter) {
      const auto sum = static_cast<std::int32_t>(sums[i][k] - bias);
      slab[parameter] = is_first ? sum : slab[parameter] + sum;
    });
  }
}

/// Writes row[i] = feature(i) for i < n. A warp calls it. Each lane has up to 8 loads in flight.
/// Feature: type of the function feature().
template <class Feature>
__device__ __forceinline__ void copy_row(float* row, int n, const Feature& feature) {
  constexpr int kAtOnce = 8;
  for (int i = thread_number() % kWarp; i < n; i += kAtOnce * kWarp) {
    float x[kAtOnce];
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      x[k] = i + k * kWarp < n ? feature(i + k * kWarp) : 0.0f;
    }
    CUDP_UNROLL for (int k = 0; k < kAtOnce; ++k) {
      if (i + k * kWarp < n) row[i + k * kWarp] = x[k];
    }
  }
}

/// Writes the features of example `number` of the data set to a row. A warp calls it.
__device__ __forceinline__ void load_row(const FusedSum& a, std::int64_t number, float* row) {
  const int lane = thread_number() % kWarp, features = a.dense.layer[0].in;
  const std::int64_t at = number * features;
  if (a.bytes != nullptr)
    copy_row(row, features,
             [&](int i) { return a.scale * static_cast<float>(a.bytes[at + i]) + a.shift; });
  else if (a.floats != nullptr)
    copy_row(row, features, [&](int i) { return a.floats[at + i]; });
  if (a.coded.rows == nullptr) return;
  for (int i = lane; i < features; i += kWarp) row[i] = 0.0f;
  __syncwarp();
  const CodedRecord record(a.coded, number);
  for (int k = lane; k < a.coded.numbers + a.coded.codes; k += kWarp) {
    if (k < a.coded.numbers) {
      row[a.coded.number_feature[k]] = record.number(k);
    } else if (const int feature = record.code(k - a.coded.numbers); feature < features) {
      row[feature] = 1.0f;
    }
  }
}

/// Returns what an example's output is compared with: its label or, if there are targets, the bits
/// of its target. a: arguments of the launch. number: index of the example in the data set.
__device__ __forceinline__ std::uint32_t truth_of(const FusedSum& a, std::int64_t number) {
  return a.targets != nullptr ? ScalarLanes::bits(a.targets[number]) : a.labels[number];
}

/// Returns the sum of squares of a row's first `width` numbers. All lanes of a warp call it.
__device__ __forceinline__ float row_square(const float* row, int width) {
  float square = 0.0f;
  for (int i = thread_number() % kWarp; i < width; i += kWarp) square += row[i] * row[i];
  return warp_sum(square);
}

// Fused step of a linear model, or of a network with hidden layers (has_hidden). has_one: there is
// one output. transforms: coordinate-wise clipping; the task must be clip. grid: a.blocks; one per
// multiprocessor is best. block: 512. dynamic smem: a.dense.tile times example_bytes(a.dense,
// transforms).
template <bool has_one, bool has_hidden, bool transforms>
__global__ void __launch_bounds__(kThreads, 1) dense_rows_kernel(FusedSum a) {
  let_dependent_start();
  constexpr int kMaxLayers = has_hidden ? kMaxDenseLayers : 1, kTiles = has_one ? 1 : 2;
  using Part = TilePart<has_one ? 1 : transforms ? 2 : 4, has_one ? 1 : transforms ? 4 : 8>;
  const DenseShapes& d = a.dense;
  const int layers = has_hidden ? d.layers : 1;
  const auto layer_at = [&](int layer) { return LayerWeights{d.layer[layer], a.parameters}; };
  const DenseLayer& last = d.layer[layers - 1];
  CUDP_DYNAMIC_SMEM(float, space);
  float* const losses = space + d.tile * d.row;
  auto* const words = reinterpret_cast<u32*>(losses + d.tile);
  auto* const adds = words + d.tile;  // 1 if the example is added, else 0
  // The next two arrays exist only with `transforms`.
  float* const scales = losses + 3 * d.tile;
  float* const layer_squares = scales + d.tile;  // [layers][kWarps][rows]
  static_assert(kDenseSquares == kWarps);
  const FusedTask task = transforms ? FusedTask::clip : a.task;
  const int live = live_examples(a.batch);
  const auto block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int lane = thread_number() % kWarp;
  std::int32_t* const slab =
      is_summed(task) ? a.slabs + static_cast<std::int64_t>(block) * last.end() : nullptr;

  // index_of(n): index in the micro-batch of the block's n-th example. `mine`: number of the
  // block's examples.
  const auto index_of = [&](int n) {
    return (n / kTileExamples * blocks + block) * kTileExamples + n % kTileExamples;
  };
  const int rounds = live / (blocks * kTileExamples);
  const int rest = live - index_of(rounds * kTileExamples);
  const int mine = rounds * kTileExamples + max(0, min(rest, kTileExamples));

  for (int begin = 0; begin < mine; begin += d.tile) {
    const TileRows x{.first = space, .stride = d.row, .n = min(mine - begin, d.tile)};
    const TileRows gradient = x.at(last.gradient), partial = x.at(d.partial);
    const auto number_of = [&](int e) { return example_number(a, index_of(begin + e)); };
    if (begin > 0) __syncthreads();  // no thread still reads the previous tile

    // Loads labels and features. Fills the rest of each array: a 1 as the input of the bias, then
    // zeros.
    const bool is_loss = thread_number() < x.n && task != FusedTask::forward;
    const std::uint32_t truth = is_loss ? truth_of(a, number_of(thread_number())) : 0;
    x.for_each_row([&](int e, float* to) {
      load_row(a, number_of(e), to);
      for (int layer = 0; layer < layers; ++layer) {
        const DenseLayer& l = d.layer[layer];
        if (lane < padded(l.in + 1) - l.in) to[l.input + l.in + lane] = lane == 0 ? 1.0f : 0.0f;
        if (lane < padded(l.out) - l.out) to[l.gradient + l.out + lane] = 0.0f;
      }
    });
    __syncthreads();

    // Forward pass, loss, and backward pass to the first layer. If a layer has more outputs than
    // all warps compute with 16 each, a warp computes 32 outputs at once. The sums are the same
    // either way.
    CUDP_UNROLL_BY(1)
    for (int layer = 0; layer < layers; ++layer) {
      const bool is_last = layer == layers - 1;
      const AnyFunction f(a.functions[is_last ? 0 : layer]);
      const auto value = [&](float z) { return is_last ? z : f.value(z); };
      const LayerWeights l = layer_at(layer);
      const TileRows input = x.at(l.input), y = is_last ? gradient : x.at(d.layer[layer + 1].input);
      if (has_hidden && l.out > 16 * kWarps)
        tile_forward<4>(l, input, partial, y, value);
      else
        tile_forward<kTiles>(l, input, partial, y, value);
    }
    if (task == FusedTask::forward) {
      gradient.for_each(0, last.out, [&](int e, int o) {
        a.logits[static_cast<std::int64_t>(index_of(begin + e)) * last.out + o] = gradient[e][o];
      });
      continue;
    }
    if (is_loss) {
      const int e = thread_number();
      float* const z = gradient[e];
      losses[e] = a.targets != nullptr
                      ? target_loss(a.loss, z[0], ScalarLanes::from_bits(truth), a.huber, z)
                      : evaluate_loss(a.loss, z, last.out, static_cast<int>(truth), z);
      if (a.class_weights != nullptr && !weighs_factors(task, transforms))
        for (int o = 0; o < last.out; ++o) z[o] *= a.class_weights[truth];
    } else if (task == FusedTask::accept && thread_number() / kWarp == 1 && lane < x.n) {
      words[lane] = acceptance_word(a.accept, number_of(lane));
    }
    __syncthreads();
    CUDP_UNROLL_BY(1)
    for (int layer = layers - 1; layer > 0; --layer) {
      const AnyFunction f(a.functions[layer - 1]);
      const LayerWeights l = layer_at(layer);
      const TileRows input = x.at(l.input), before = x.at(d.layer[layer - 1].gradient);
      tile_product<kTiles>(
          x.at(l.gradient), l.out, l.in, 1, [&](int i, int o) { return l.of_input(i, o); },
          [&](int e, int i, int, float sum) { before[e][i] = sum * f.derivative(input[e][i]); });
      __syncthreads();
    }

    if constexpr (transforms) {
      CUDP_UNROLL_BY(1)
      for (int layer = 0; layer < layers; ++layer)
        tile_squares<Part>(d.layer[layer], a.transform, x, layer_squares + layer * kWarps * x.n);
      __syncthreads();
    }

    // Computes the norm and clip factors of each example, one warp per example.
    x.for_each_row([&](int e, float* to) {
      float squares[kMaxLayers], factors[kMaxLayers];
      CUDP_UNROLL for (int layer = 0; layer < kMaxLayers; ++layer) {
        squares[layer] = 0.0f;
        if (layer >= layers) continue;
        const DenseLayer& l = d.layer[layer];
        if constexpr (transforms) {
          for (int warp = 0; warp < kWarps; ++warp)
            squares[layer] += layer_squares[(layer * kWarps + warp) * x.n + e];
        } else {
          squares[layer] = dense_squared_norm(row_square(to + l.input, l.in),
                                              row_square(to + l.gradient, l.out), l.out);
        }
      }
      __syncwarp();  // every lane has read the row: it is overwritten below
      const bool is_added = decide_example(
          a, task, true, [&] { return number_of(e); }, layers, squares, factors,
          [&](float seen, float square) {
            return acceptance_factor(*a.accept.rule, seen_norm(*a.accept.rule, seen), words[e],
                                     square);
          });
      if (!is_summed(task)) return;
      const float inverse_grid = a.sum_scale->inverse_grid;
      if (lane == 0) {
        adds[e] = is_added ? 1 : 0;
        if constexpr (transforms) scales[e] = factors[0] * inverse_grid;
        report_example(a, index_of(begin + e), losses[e], layers, squares, factors);
      }
      if constexpr (!transforms) {
        float scale = inverse_grid;
        if (a.class_weights != nullptr && weighs_factors(task, transforms))
          scale *= a.class_weights[a.labels[number_of(e)]];
        CUDP_UNROLL for (int layer = 0; layer < kMaxLayers; ++layer) {
          if (layer >= layers) break;
          const DenseLayer& l = d.layer[layer];
          const float by = factors[layer] * scale;
          for (int o = lane; o < l.out; o += kWarp) to[l.gradient + o] *= by;
        }
      }
    });
    if (!is_summed(task)) continue;
    __syncthreads();

    const unsigned adding = __ballot_sync(kFullWarp, lane < x.n && adds[lane] != 0);
    CUDP_UNROLL_BY(1)
    for (int layer = 0; layer < layers; ++layer)
      tile_sum<Part, transforms>(d.layer[layer], x, adding, begin == 0, a.transform, scales, slab);
  }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
