#pragma once
// Plans of how layers find their numbers: plain data, made on the host. It does not depend on CUDA.
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

/// Axis (tiled_product.hpp) before tables have addresses. `table` is an offset in
/// CudaStorage::tables, or -1 for no table.
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
  Precision as = Precision::fp32;  ///< format of the numbers
};

/// Axis whose neighbours are `step` apart.
inline AxisPlan strided(std::int64_t step) { return {.inner = narrow(step)}; }
/// Axis with the same table for every example. Examples are `apart` elements apart.
inline AxisPlan each(AxisPlan axis, std::int64_t period, std::int64_t apart) {
  axis.period = narrow(period);
  axis.outer = narrow(apart);
  return axis;
}

/// device::Product whose right factor is a layer's weight.
struct ProductPlan {
  FactorPlan a;
  FactorPlan b;
  AxisPlan out_row;
  AxisPlan out_column;
  AxisPlan y_row = {};  ///< rows of y, if the epilogue is the derivative of a function of y
  AxisPlan y_column = {};
  std::int32_t rows_per_example = 0;
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  PixelPatch patch = {};         ///< no lines: the tables say where the numbers are
  std::int64_t packed_at = 0;    ///< offset of the packed weight, with a patch
  std::int64_t rounded_at = -1;  ///< offset of the rounded weight, for TF32 without a patch, or -1
};

/// PackedWeight. Weights that keep their order are packed only if other weights are packed too, all
/// in one launch. Otherwise products round them.
struct PackPlan {
  FactorPlan weight;
  std::int64_t weight_at = 0;  ///< offset in the parameters
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  std::int64_t packed_at = 0;
  bool keeps_order = false;
};

/// WeightGradient, and the precision in which its norm and its sum are multiplied.
struct GradientPlan {
  FactorPlan x;
  FactorPlan dy;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t terms_per_example = 0;
  Precision precision = Precision::fp32;
  ConvPatch patch = {};  ///< no lines: the tables say where the numbers are
};

/// Number of weights from which a dense layer uses the device's BLAS. It multiplies whole slabs of
/// kSlab examples, so that an example's numbers do not depend on how many there are.
inline constexpr std::int64_t kLargeDense = 1 << 20;
inline constexpr int kSlab = 256;

/// Smallest number of rows (channels times taps, or inputs) and of columns (channels, or outputs)
/// of a weight from which tensor cores multiply it, if TF32 is requested. With fewer a tile is
/// mostly padding. Not measured.
inline constexpr int kMinTensorSide = 16;

/// Shared memory of a block that multiplies patches [bytes]. Three such blocks fit a multiprocessor
/// of an H200, two that of an A100.
inline std::size_t patch_shared_bytes(const DeviceLimits& limits) {
  return std::min(limits.shared_bytes, std::size_t{72} * 1024);
}

/// The activations between two layers, and their gradients. A layer that works in place has the
/// same edge before and after.
struct CudaEdge {
  std::size_t number = 0;
  Planes value;     ///< its border is the padding of the convolution that reads it
  Planes gradient;  ///< its border serves the input gradient of the convolution that made it
  bool has_gradient = false;
  Precision value_as = Precision::fp32;  ///< format of the values: see round_edges
  Precision gradient_as = Precision::fp32;
};

/// Settings from which build_layout() chooses the buffers and kernels of each layer.
struct LayoutChoices {
  /// tf32: used for layers that gain from it (kMinTensorSide) and for those that use BLAS.
  /// Everything that is not a matrix product stays in fp32.
  Precision precision = Precision::fp32;
  std::int64_t large_dense = kLargeDense;
  DeviceLimits limits = {};
  /// Whether gradients are transformed before clipping. The kernels of patches have no registers to
  /// spare for this.
  bool transforms = false;
  /// Whether convolutions and recurrent layers run forward by the device's library, in an engine
  /// that evaluates.
  bool evaluates_by_library = false;
};

/// Device memory that the layers of a network take. Each layer reserves its own.
struct CudaStorage {
  std::vector<std::int32_t> tables;
  std::vector<std::int32_t> group_parts{0};  ///< [groups + 1], as device::Clip takes them
  std::int64_t saved = 0;              ///< floats per example that forward leaves for backward
  std::int64_t example_gradients = 0;  ///< floats per example for gradients that exist as a whole
  std::int64_t transform_scratch = 0;  ///< floats per example for norms of transformed gradients
  std::int64_t library_scratch = 0;    ///< floats per example for layers by a library
  std::vector<ProductPlan> patched_products;
  std::vector<PackPlan> packs;
  std::int64_t packed = 0;  ///< floats of packed weights
  std::vector<GradientPlan> patched_gradients;
  bool has_texts = false;
  bool sorts_words = false;  ///< whether a table of words is trained
  bool uses_blas = false;
  bool uses_tensor_cores = false;

  /// Number of parts of squared norms, of all groups.
  std::int32_t parts() const { return group_parts.back(); }
  /// Reserves parts of the next group's squared norm and returns the first. Call once per layer
  /// with parameters.
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

  /// Plans to pack a weight before each pass. Returns its offset, a multiple of 16 bytes.
  std::int64_t pack(PackPlan p) {
    const std::int64_t floats =
        p.keeps_order ? std::int64_t{p.terms} * p.columns : packed_floats(p.terms, p.columns);
    p.packed_at = reserve(packed, (floats + 3) / 4 * 4);
    packs.push_back(p);
    return p.packed_at;
  }

  /// Makes a table of n entries. Entry i is at(i).
  template <class At>
  AxisPlan table(std::int64_t n, const At& at) {
    const auto first = static_cast<std::int64_t>(tables.size());
    for (std::int64_t i = 0; i < n; ++i) tables.push_back(narrow(at(static_cast<int>(i))));
    return {.table = first};
  }
  /// Axis of all numbers of an example's planes, in PyTorch's order.
  AxisPlan flat(const Planes& p) {
    if (p.border == 0) return strided(1);
    return table(p.pixels(), [&](int i) { return p.pixel_offset(i); });
  }
};

}  // namespace cudp::cuda
