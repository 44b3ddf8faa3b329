#pragma once
// How layers find their numbers: plain data, made on the host. Knows no CUDA.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/patch_product.hpp"
#include "kernels/products/tiled_product.hpp"
#include "runtime/base/error.hpp"

namespace cudp::cuda {

inline std::int32_t narrow(std::int64_t n) {
  ensure(n >= 0 && n < (std::int64_t{1} << 31), "the model is too large for 32-bit offsets");
  return static_cast<std::int32_t>(n);
}

/// An Axis (tiled_product.hpp) before tables have addresses: `table` is an offset in
/// CudaStorage::tables, -1 for none.
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
  Precision as = Precision::fp32;  ///< as what the numbers are stored
};

/// Neighbours `step` apart.
inline AxisPlan strided(std::int64_t step) { return {.inner = narrow(step)}; }
/// A table that is the same for every example, `apart` elements from one to the next.
inline AxisPlan each(AxisPlan axis, std::int64_t period, std::int64_t apart) {
  axis.period = narrow(period);
  axis.outer = narrow(apart);
  return axis;
}

/// A device::Product whose right factor is a layer's weight.
struct ProductPlan {
  FactorPlan a;
  FactorPlan b;
  AxisPlan out_row;
  AxisPlan out_column;
  AxisPlan y_row = {};  ///< of the values of a function whose derivative is its epilogue
  AxisPlan y_column = {};
  std::int32_t rows_per_example = 0;
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  PixelPatch patch = {};         ///< without lines: tables say where numbers lie
  std::int64_t packed_at = 0;    ///< with a patch: where the weight is packed
  std::int64_t rounded_at = -1;  ///< in TF32 without one: where it is rounded; -1 for nowhere
};

/// A PackedWeight. Weights that keep their order are packed only where others are packed too, which
/// are then one launch; else products round them.
struct PackPlan {
  FactorPlan weight;
  std::int64_t weight_at = 0;  ///< where it begins among the parameters
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  std::int64_t packed_at = 0;
  bool keeps_order = false;
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
inline constexpr int kMinTensorSide = 16;

/// Shared memory of a block that multiplies patches: three of them fit an H200's multiprocessor,
/// two an A100's.
inline std::size_t patch_shared_bytes(const DeviceLimits& limits) {
  return std::min(limits.shared_bytes, std::size_t{72} * 1024);
}

/// The activations between two layers and their gradients. A layer that works in place has the same
/// edge before and after.
struct CudaEdge {
  std::size_t number = 0;
  Planes value;     ///< its border is the padding of the convolution that reads it
  Planes gradient;  ///< its border serves the input gradient of the convolution that made it
  bool has_gradient = false;
  Precision value_as = Precision::fp32;  ///< as what they are stored: see round_edges
  Precision gradient_as = Precision::fp32;
};

/// The facts that a layout is chosen by.
struct LayoutChoices {
  /// tf32: for layers that gain from it (kMinTensorSide) and those that go to BLAS; whatever is
  /// not a matrix product stays in fp32.
  Precision precision = Precision::fp32;
  std::int64_t large_dense = kLargeDense;
  DeviceLimits limits = {};
  /// Gradients are transformed before they are clipped, for which the kernels of patches have no
  /// registers.
  bool transforms = false;
  /// Convolutions and recurrent layers forward by the device's library: for an engine that
  /// evaluates.
  bool evaluates_by_library = false;
};

/// The memory that the layers of a network take of a device. Each reserves its own.
struct CudaStorage {
  std::vector<std::int32_t> tables;
  std::vector<std::int32_t> group_parts{0};  ///< [groups + 1], as device::Clip takes them
  std::int64_t saved = 0;              ///< floats an example: what forward leaves for backward
  std::int64_t example_gradients = 0;  ///< floats an example: gradients that exist as a whole
  std::int64_t transform_scratch = 0;  ///< floats an example, for norms of transformed gradients
  std::int64_t library_scratch = 0;    ///< floats an example, for layers by a library
  std::vector<ProductPlan> patched_products;
  std::vector<PackPlan> packs;
  std::int64_t packed = 0;  ///< floats of packed weights
  std::vector<GradientPlan> patched_gradients;
  bool has_texts = false;
  bool sorts_words = false;  ///< a table of words is trained
  bool uses_blas = false;
  bool uses_tensor_cores = false;

  /// Parts of squared norms, of all groups.
  std::int32_t parts() const { return group_parts.back(); }
  /// Parts of the next group's squared norm; returns the first. To be called once a layer with
  /// parameters.
  std::int32_t reserve_parts(int n) {
    group_parts.push_back(parts() + n);
    return group_parts[group_parts.size() - 2];
  }
  /// Adds n floats to one of the sizes above and returns the offset of the first.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }

  /// Packs a weight before each pass; returns where, at a multiple of 16 bytes.
  std::int64_t pack(PackPlan p) {
    const std::int64_t floats =
        p.keeps_order ? std::int64_t{p.terms} * p.columns : packed_floats(p.terms, p.columns);
    p.packed_at = reserve(packed, (floats + 3) / 4 * 4);
    packs.push_back(p);
    return p.packed_at;
  }

  /// A table of n entries, entry i given by at(i).
  template <class At>
  AxisPlan table(std::int64_t n, const At& at) {
    const auto first = static_cast<std::int64_t>(tables.size());
    for (std::int64_t i = 0; i < n; ++i) tables.push_back(narrow(at(static_cast<int>(i))));
    return {.table = first};
  }
  /// All numbers of an example's planes in PyTorch's order.
  AxisPlan flat(const Planes& p) {
    if (p.border == 0) return strided(1);
    return table(p.pixels(), [&](int i) { return p.pixel_offset(i); });
  }
};

}  // namespace cudp::cuda
