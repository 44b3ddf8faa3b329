#pragma once
// Linear models and networks of one hidden layer: a block takes a tile of examples at once, whose
// features and activations are in shared memory, a row an example.
//
// No weight's gradient of a single example exists: the norm is (|x|^2 + 1) |dy|^2 by layer, and
// once the factors are known, a thread adds the tile's products x dy for a few weights in
// registers, in units, and writes them to the block's slab; so the sum takes no memory of the
// block. Weights are read as they are needed, once for four examples, through the first-level
// cache: they need not fit a block either. What limits a network is the slabs
// (kFusedParameters), and that a block must have room for the rows of kTileExamples examples:
//
//   examples a tile, 28 at most | H200, 227 KB | A100, 163 KB | Ada, 99 KB
//   logistic, 124 features      |           28 |           28 |         28
//   10 classes, 784 features    |           28 |           28 |         28
//   10 classes, 3,969 features  |           14 |           10 |          6
//   60 -> 1000 -> 10 (DP-PCA)   |           27 |           20 |         12
//   most features, one output   |       14,519 |       10,423 |      6,327
//   most features, 10 outputs   |        7,999 |        7,999 |      6,319
//
// mlp on 784 features has 795,010 parameters: a slab of 3.2 MB, and 132 of them, 420 MB, to write
// and to read again for every micro-batch. That alone is 180 us of device memory, in which the
// layer-wise path (runtime/device/cuda/layer_wise.hpp) should do 1,500 examples: so it goes that
// way.
//
// Where gradients are transformed before they are clipped (contribution/coordinates_math.hpp), a
// tile's w are made twice, for their squares and as they are added, by one function
// (transformed_product): m and 1 / scale are read twice a tile.
#include <cstdint>

#include "kernels/common/coded_rows.cuh"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/candidates.cuh"
#include "kernels/fused/fused_tile.cuh"
#include "kernels/fused/reduce.cuh"
#include "kernels/layers/loss_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// A feature of the data set.
__device__ __forceinline__ float feature(const FusedSum& a, std::int64_t at) {
  return a.bytes != nullptr ? a.scale * static_cast<float>(a.bytes[at]) + a.shift : a.floats[at];
}
/// Puts into a tile's rows of zeros what records have. number_of(e): the example of row e.
template <class NumberOf>
__device__ __forceinline__ void put_coded(const CodedRows& rows, const TileRows& x,
                                          const NumberOf& number_of) {
  x.for_each(rows.numbers + rows.codes, [&](int e, int k) {
    const CodedRecord record(rows, number_of(e));
    if (k < rows.numbers) {
      x[e][rows.number_feature[k]] = record.number(k);
    } else {
      const int feature = record.code(k - rows.numbers);
      if (feature < rows.features) x[e][feature] = 1.0f;
    }
  });
}
/// What stands behind a layer's inputs: the bias's 1, then zeros.
__device__ __forceinline__ float bias_input(int i) { return i == 0 ? 1.0f : 0.0f; }

/// Sum of the squares of a row's first `width` numbers, by a warp.
__device__ __forceinline__ float row_square(const float* row, int width) {
  float square = 0.0f;
  for (int i = thread_number() % kWarp; i < width; i += kWarp) square += row[i] * row[i];
  return warp_sum(square);
}

// grid: a.blocks, one a multiprocessor is best. block: 256. dynamic smem: fused_bytes(a.dense,
// transforms). kEach: outputs that a thread works on at once, 1 or 4. transforms: gradients are,
// before they are clipped, and the task is a clipped sum.
template <int kEach, bool has_hidden, bool transforms>
__global__ void __launch_bounds__(kFusedThreads, 1) fused_mlp_kernel(FusedSum a) {
  constexpr int kLayers = has_hidden ? 2 : 1;
  const DenseShapes& d = a.dense;
  const DenseRow row(d);
  CUDP_DYNAMIC_SMEM(float, space);
  const int rows = d.tile * row.size;
  float* const losses = space + rows;
  auto* const words = reinterpret_cast<std::uint32_t*>(losses + d.tile);
  auto* const adds = words + d.tile;             // 1 or 0
  float* const scales = losses + 3 * d.tile;     // with transforms, and so the squares
  float* const layer_squares = scales + d.tile;  // [kLayers][warps][rows]
  const FusedTask task = transforms ? FusedTask::clip : a.task;
  const int live = live_examples(a.batch);
  const auto block = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);
  const int lane = thread_number() % kWarp;
  const float* const p = a.parameters;
  const TileLayer first{.in = d.features, .out = has_hidden ? d.hidden : d.outputs, .weight_at = 0};
  const TileLayer last{.in = has_hidden ? d.hidden : d.features,
                       .out = d.outputs,
                       .weight_at = has_hidden ? first.end() : 0};
  std::int32_t* const slab =
      is_summed(task) ? a.slabs + static_cast<std::int64_t>(block) * last.end() : nullptr;
  const AnyFunction f(a.functions[0]);

  // The block's n-th example in the micro-batch, and how many it has.
  const auto index_of = [&](int n) {
    return (n / kTileExamples * blocks + block) * kTileExamples + n % kTileExamples;
  };
  const int rounds = live / (blocks * kTileExamples);
  const int rest = live - index_of(rounds * kTileExamples);
  const int last_turn = rest < kTileExamples ? rest : kTileExamples;
  const int mine = rounds * kTileExamples + (last_turn > 0 ? last_turn : 0);

  for (int begin = 0; begin < mine; begin += d.tile) {
    const TileRows x{
        .first = space, .stride = row.size, .n = mine - begin < d.tile ? mine - begin : d.tile};
    const TileRows hidden = x.at(row.hidden);
    const TileRows gradient_hidden = x.at(row.gradient_hidden);
    const TileRows gradient = x.at(row.gradient);
    const TileRows& last_in = has_hidden ? hidden : x;
    const auto number_of = [&](int e) { return example_number(a, index_of(begin + e)); };
    if (begin > 0) __syncthreads();  // the tile before is done with

    const bool is_coded = a.coded.rows != nullptr;
    x.for_each(row.hidden, [&](int e, int i) {
      const bool is_read = i < d.features && !is_coded;
      x[e][i] = is_read ? feature(a, number_of(e) * d.features + i) : bias_input(i - d.features);
    });
    if (is_coded) {
      __syncthreads();
      put_coded(a.coded, x, number_of);
    }
    if constexpr (has_hidden) {
      hidden.for_each(row.gradient_hidden - row.hidden - d.hidden,
                      [&](int e, int i) { hidden[e][d.hidden + i] = bias_input(i); });
      gradient_hidden.for_each(row.gradient - row.gradient_hidden - d.hidden,
                               [&](int e, int i) { gradient_hidden[e][d.hidden + i] = 0.0f; });
    }
    gradient.for_each(row.size - row.gradient - d.outputs,
                      [&](int e, int i) { gradient[e][d.outputs + i] = 0.0f; });
    __syncthreads();

    // Forward, and backward.
    if constexpr (has_hidden) {
      tile_forward<kEach>(first, p, x, hidden, [&](float z) { return f.value(z); });
      __syncthreads();
    }
    tile_forward<kEach>(last, p, last_in, gradient, [](float z) { return z; });
    __syncthreads();
    if (task == FusedTask::forward) {
      gradient.for_each(d.outputs, [&](int e, int o) {
        a.logits[static_cast<std::int64_t>(index_of(begin + e)) * d.outputs + o] = gradient[e][o];
      });
      continue;
    }
    if (thread_number() < x.n) {
      const int e = thread_number();
      float* const z = gradient[e];
      losses[e] = evaluate_loss(a.loss, z, d.outputs, a.labels[number_of(e)], z);
    } else if (task == FusedTask::accept && thread_number() / kWarp == 1 && lane < x.n) {
      words[lane] = acceptance_word(a.accept, number_of(lane));
    }
    __syncthreads();
    if constexpr (has_hidden) {
      tile_backward(last, p, hidden, gradient, gradient_hidden, f);
      __syncthreads();
    }

    if constexpr (transforms) {
      if constexpr (has_hidden)
        tile_squares<kEach>(first, a.transform, x, gradient_hidden, layer_squares);
      tile_squares<kEach>(last, a.transform, last_in, gradient,
                          layer_squares + (kLayers - 1) * (kFusedThreads / kWarp) * x.n);
      __syncthreads();
    }

    // Norms and factors, a warp an example. One that is not finite, or not accepted, is not added.
    for (int e = thread_number() / kWarp; e < x.n; e += kFusedThreads / kWarp) {
      float squares[kLayers];
      if constexpr (transforms) {
        CUDP_UNROLL for (int layer = 0; layer < kLayers; ++layer) {
          squares[layer] = 0.0f;
          for (int warp = 0; warp < kFusedThreads / kWarp; ++warp)
            squares[layer] += layer_squares[(layer * (kFusedThreads / kWarp) + warp) * x.n + e];
        }
      } else {
        const float* const dy = has_hidden ? gradient_hidden[e] : gradient[e];
        squares[0] =
            dense_squared_norm(row_square(x[e], first.in), row_square(dy, first.out), first.out);
        if constexpr (has_hidden)
          squares[1] = dense_squared_norm(row_square(hidden[e], last.in),
                                          row_square(gradient[e], last.out), last.out);
      }
      __syncwarp();  // every lane has read the row: it is overwritten below
      float factors[kLayers];
      if (task == FusedTask::clip) {
        const float square =
            clip_factors(clip_settings(a.clip, *a.sum_scale), squares, kLayers, factors);
        if (lane == 0) adds[e] = square < INFINITY ? 1 : 0;
      } else {
        float factor = 0.0f;
        if (lane == 0) {
          float& norm = a.norms[number_of(e)];
          const float square = total_square(squares);
          if (task == FusedTask::accept) {
            const SeenNorm seen = seen_norm(*a.accept.rule, norm);
            factor = acceptance_factor(*a.accept.rule, seen, words[e], square);
            adds[e] = factor > 0.0f ? 1 : 0;
          }
          norm = kept_norm(square);
        }
        factor = __shfl_sync(kFullWarp, factor, 0);
        CUDP_UNROLL for (int layer = 0; layer < kLayers; ++layer) { factors[layer] = factor; }
      }
      if (a.losses != nullptr && lane == 0) {
        const int at = index_of(begin + e);
        a.losses[at] = losses[e];
        CUDP_UNROLL for (int layer = 0; layer < kLayers; ++layer) {
          const int entry = kLayers * at + layer;
          a.squared_norms[entry] = squares[layer];
          a.factors[entry] = factors[layer];
        }
      }
      if (is_summed(task)) {
        const float inverse_grid = a.sum_scale->inverse_grid;
        if constexpr (transforms) {
          if (lane == 0) scales[e] = factors[0] * inverse_grid;
        } else {
          const float scale_first = factors[0] * inverse_grid;
          const float scale_last = factors[kLayers - 1] * inverse_grid;
          for (int i = row.gradient_hidden + lane; i < row.size; i += kWarp)
            x[e][i] *= i < row.gradient ? scale_first : scale_last;
        }
      }
    }
    if (!is_summed(task)) continue;
    __syncthreads();

    const unsigned adding = __ballot_sync(kFullWarp, lane < x.n && adds[lane] != 0);
    const bool is_first = begin == 0;
    if constexpr (has_hidden)
      tile_sum<kEach, transforms>(first, x, gradient_hidden, adding, is_first, a.transform, scales,
                                  slab);
    tile_sum<kEach, transforms>(last, last_in, gradient, adding, is_first, a.transform, scales,
                                slab);
  }
}

}  // namespace cudp::inline CUDP_SIMT
