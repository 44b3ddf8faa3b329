#pragma once
// A network laid out for the CUDA engine: which planes hold what, and how each layer's products
// find their numbers. Plain data, made on the host; knows no CUDA.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/patch_product.hpp"
#include "models/model.hpp"

namespace cudp::cuda {

/// The activations between two layers and their gradients. A function works in place, so it has the
/// same edge before and after.
struct Edge {
  Planes value;     ///< its border is the padding of the convolution that reads it
  Planes gradient;  ///< its border serves the input gradient of the convolution that made it
  bool has_gradient = false;
};

/// An Axis (batch_product.hpp) before tables have addresses: `table` is a place in
/// DeviceGraph::tables, -1 for none.
struct AxisPlan {
  std::int64_t table = -1;
  std::int32_t period = 0;
  std::int32_t outer = 0;
  std::int32_t inner = 1;
};
struct FactorPlan {
  AxisPlan line;
  AxisPlan term;
  bool along_terms = false;
};

/// A BatchProduct whose right factor is the layer's weight.
struct ProductPlan {
  FactorPlan a;
  FactorPlan b;
  AxisPlan out_row;
  AxisPlan out_column;
  std::int32_t rows_per_example = 0;
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  PixelPatch patch = {};  ///< without lines: tables say where numbers lie
};

/// A WeightGradient, and what its norm and its sum are multiplied in.
struct GradientPlan {
  FactorPlan x;
  FactorPlan dy;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t terms_per_example = 0;
  Precision precision = Precision::fp32;
  ConvPatch patch = {};  ///< without lines: tables say where numbers lie
};

/// A dense layer with as many weights goes to the device's BLAS, by slabs of kSlab examples: whole
/// ones, so that an example's numbers do not depend on how many there are.
inline constexpr std::int64_t kLargeDense = 1 << 20;
inline constexpr int kSlab = 256;

/// Layers whose weight has as many rows (channels times taps, inputs) and columns (channels,
/// outputs) are multiplied by tensor cores where that is asked for: with fewer a tile is mostly
/// padding. Not measured.
inline constexpr int kLeastTensorSide = 16;

/// A 3x3 convolution in TF32 with as many channels is made from patches of planes: with fewer,
/// blocks are mostly padding. Not measured.
inline constexpr int kLeastPatchChannels = 16;

/// Shared memory of a block that multiplies patches: three of them fit an H200's multiprocessor,
/// two an A100's.
inline std::size_t patch_shared_bytes(const DeviceLimits& limits) {
  return std::min(limits.shared_bytes, std::size_t{72} * 1024);
}

struct Op {
  const NetworkLayer* layer = nullptr;
  std::size_t in = 0;   ///< edge
  std::size_t out = 0;  ///< edge; equal to `in` for a function in place
  bool gives_input_gradient = false;

  std::int64_t parameters = 0;  ///< first of the layer's parameters; the bias follows the weight
  std::int64_t parameter_count = 0;
  ProductPlan forward;                      ///< convolution and dense
  std::vector<ProductPlan> input_gradient;  ///< stride^2 of them for a convolution
  GradientPlan gradient;                    ///< convolution and dense
  Precision precision = Precision::fp32;    ///< of `forward` and `input_gradient`
  bool uses_blas = false;
  std::int32_t first_part = 0;  ///< of the squared norm; see BatchClip
  std::int64_t statistics = 0;  ///< group norm: floats an example before this layer's
  std::int64_t rows = 0;        ///< group norm: gradient floats before this layer's
};

struct DeviceGraph {
  std::vector<Edge> edges;
  std::vector<Op> ops;
  std::vector<std::int32_t> tables;
  std::vector<std::int32_t> group_parts;  ///< [groups + 1], as BatchClip takes them
  std::int64_t statistics = 0;            ///< floats an example
  std::int64_t gradient_rows = 0;

  std::int32_t parts() const { return group_parts.back(); }
  bool uses_blas() const;
  bool uses_tensor_cores() const;
  /// A micro-batch is a multiple of this many examples.
  int example_group() const;
  /// Floats that one example in flight takes.
  std::int64_t floats_per_example(int groups, int outputs) const;
};

/// precision: tf32 for layers that gain from it (kLeastTensorSide) and those that go to BLAS;
/// whatever is not a matrix product stays in fp32. Keeps pointers into `network`. Throws Error
/// where 32-bit offsets do not reach.
DeviceGraph build_device_graph(const Network& network, Precision precision = Precision::fp32,
                               std::int64_t large_dense = kLargeDense,
                               const DeviceLimits& limits = {});

}  // namespace cudp::cuda
