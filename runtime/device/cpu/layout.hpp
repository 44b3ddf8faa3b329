#pragma once
#include <cstdint>
#include <vector>

#include "kernels/layers/image.hpp"
#include "kernels/layers/pool.hpp"
#include "kernels/products/gather_gemm.hpp"
#include "models/model.hpp"

namespace cudp::cpu {

inline constexpr int kMaxChunk = 64;

/// The activations between two layers. An activation function works in place, so it has the same
/// edge before and after.
struct Edge {
  ImageLayout layout;
  std::int64_t value = 0;     ///< offset in one example's activations
  std::int64_t gradient = 0;  ///< offset in the gradients: of the batch if `batched`, else shared
  bool batched = false;       ///< its gradient is kept for every example in flight
};

/// A layer as the CPU runs it: which edges, which tables, where its parameters are. Tables are
/// empty where the layer has no use for them.
struct Op {
  const NetworkLayer* layer = nullptr;
  int in = 0;   ///< edge
  int out = 0;  ///< edge; equal to `in` for a function in place
  bool gives_input_gradient = false;

  // Parameters, packed: rows of `columns` floats, then a bias of `columns` floats. The same offsets
  // serve the packed weights and their packed gradients.
  std::int64_t packed = 0;
  std::int64_t transposed = 0;  ///< offset in the transposed weights, for the input gradient
  int rows = 0;
  int columns = 0;

  std::vector<std::int32_t>
      input_of_row;                      ///< row -> offset in the input (tap and channel, or input)
  std::vector<std::int32_t> packed_row;  ///< row -> offset of its weights
  // Convolution:
  std::vector<std::int32_t> in_pixel;     ///< output pixel -> first input pixel under the kernel
  std::vector<std::int32_t> out_pixel;    ///< output pixel -> offset in the output
  std::vector<std::int32_t> input_block;  ///< (kernel position, 16 channels) -> offset in the input
  std::vector<GemmStep> forward_steps;    ///< over rows
  std::vector<GemmStep> weight_steps;     ///< over output pixels
  std::vector<GemmStep> input_steps;      ///< over output channels
  std::int64_t direct = 0;                ///< offset in the per-example gradient buffer
  std::int64_t statistics = 0;            ///< group norm: offset of mean and inverse deviation
  PoolGeometry pool{};

  std::int64_t packed_size() const { return static_cast<std::int64_t>(rows + 1) * columns; }
  bool has_parameters() const { return layer->has_parameters(); }
};

/// A network laid out for the CPU. Layers up to the last convolution, pooling or group norm run one
/// example at a time, whose data then stays in the first-level cache; the dense layers after them
/// run on all examples in flight, so that their weights are read once for many.
struct Graph {
  const Network* network = nullptr;
  /// Examples whose clipped gradients are added in float32 before the sum is settled: part of what
  /// the sum is, so a function of the network alone. 16, or 64 for networks of large dense layers,
  /// whose sums are bound by the memory traffic of settling.
  int chunk = 16;
  std::vector<Edge> edges;
  std::vector<Op> ops;
  std::size_t first_batched = 0;        ///< ops from here run on the batch
  std::size_t first_with_gradient = 0;  ///< backward stops here
  std::int64_t value_size = 0;          ///< floats of activations an example
  std::int64_t shared_gradient_size = 0;
  std::int64_t batched_gradient_size = 0;  ///< an example
  std::int64_t packed_size = 0;
  std::int64_t transposed_size = 0;
  std::int64_t direct_size = 0;
  std::int64_t statistics_size = 0;  ///< an example
  /// Canonical parameter -> packed position; and transposed position, -1 for none.
  std::vector<std::int32_t> where;
  std::vector<std::int32_t> where_transposed;
};

/// Keeps a pointer to `network`.
Graph build_graph(const Network& network);

}  // namespace cudp::cpu
