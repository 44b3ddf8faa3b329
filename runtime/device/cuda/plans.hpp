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

/// Mapping from an index along one dimension of a matrix to an offset in memory: an Axis
/// (kernels/products/tile.hpp) before it is on a device. `table` is an offset in
/// CudaStorage::tables instead of an address; -1 for no table.
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

/// Returns the axis that maps index n to offset n step.
inline AxisPlan strided(std::int64_t step) { return {.inner = narrow(step)}; }
/// Returns `axis` repeated for every example of a micro-batch: each example has `period` indices,
/// and examples are `apart` elements apart.
inline AxisPlan each(AxisPlan axis, std::int64_t period, std::int64_t apart) {
  axis.period = narrow(period);
  axis.outer = narrow(apart);
  return axis;
}

/// Arguments of a product (device::Product) with a layer's weight, before addresses are known.
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
  PixelPatch patch = {};         ///< patch that the product uses; lines = 0: it uses the tables
  std::int64_t packed_at = 0;    ///< offset of the packed weight; used only with a patch
  std::int64_t rounded_at = -1;  ///< offset of the rounded weight, for TF32 without a patch, or -1
};

/// Plan of a weight matrix that is copied, in the order in which a product's kernel reads it and
/// rounded to TF32, before each step. Addresses are not known yet. A matrix that is rounded only
/// (keeps_order) is copied only if others are, because one launch copies all; otherwise the product
/// rounds it each time it reads it.
struct PackPlan {
  FactorPlan weight;
  std::int64_t weight_at = 0;  ///< offset in the parameters
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  std::int64_t packed_at = 0;
  bool keeps_order = false;
};

/// Arguments of the kernels for a layer's weight gradient (WeightGradient) before addresses are
/// known, and the precision of the gradient's norm and sum.
struct GradientPlan {
  FactorPlan x;
  FactorPlan dy;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t terms_per_example = 0;
  Precision precision = Precision::fp32;
  ConvPatch patch = {};  ///< patch that the gradient uses; lines = 0: it uses the tables
};

/// A dense layer with at least this number of weights uses the device's BLAS. BLAS then multiplies
/// groups of exactly kSlab examples, so that an example's result does not depend on the number of
/// examples.
inline constexpr std::int64_t kLargeDense = 1 << 20;
inline constexpr int kSlab = 256;

/// Tensor cores multiply a weight, if TF32 is requested, only if it has at least this number of
/// rows (channels times taps, or inputs) and of columns (channels, or outputs). With fewer, most of
/// a tile would be padding. The value is not measured.
inline constexpr int kMinTensorSide = 16;

/// Returns the shared memory for a block that multiplies patches [bytes]. Three such blocks fit a
/// multiprocessor of an H200, two fit one of an A100.
inline std::size_t patch_shared_bytes(const DeviceLimits& limits) {
  return std::min(limits.shared_bytes, std::size_t{72} * 1024);
}

/// Activations between two layers, and their gradients. A layer that works in place has the same
/// edge as input and output.
struct CudaEdge {
  std::size_t number = 0;
  Planes value;  ///< its border is the padding of the convolution that reads it
  /// Its border is for the input gradient of the convolution whose output this is.
  Planes gradient;
  bool has_gradient = false;
  /// Whether the stored values are rounded to TF32; see round_edges.
  Precision value_as = Precision::fp32;
  Precision gradient_as = Precision::fp32;
};

/// Choices of a network's engine from which build_layout() derives the buffers and kernels of each
/// layer.
struct LayoutChoices {
  /// tf32: used for layers that gain from it (kMinTensorSide) and for those that use BLAS.
  /// Everything that is not a matrix product stays in fp32.
  Precision precision = Precision::fp32;
  std::int64_t large_dense = kLargeDense;
  DeviceLimits limits = {};
  /// Whether gradients are transformed before clipping. If so, patches are not used, because their
  /// kernels have no registers to spare for the transform.
  bool transforms = false;
  /// Whether the forward passes of convolutions and recurrent layers call the device's library
  /// (cuDNN). Only for an engine that evaluates.
  bool evaluates_by_library = false;
};

/// Sizes of the device memory that the layers of a network need, and the tables that they read.
/// Each layer reserves its own part.
struct CudaStorage {
  std::vector<std::int32_t> tables;
  std::vector<std::int32_t> group_parts{0};  ///< [groups + 1], as device::Clip takes them
  std::int64_t saved = 0;  ///< floats per example that forward() saves for backward()
  /// Floats per example for parameter gradients that are stored whole.
  std::int64_t example_gradients = 0;
  std::int64_t transform_scratch = 0;  ///< floats per example for norms of transformed gradients
  std::int64_t library_scratch = 0;    ///< floats per example of scratch for calls of cuDNN
  std::vector<ProductPlan> patched_products;
  std::vector<PackPlan> packs;
  std::int64_t packed = 0;  ///< floats of packed weights
  std::vector<GradientPlan> patched_gradients;
  bool has_texts = false;
  bool sorts_words = false;  ///< whether a table of words is trained
  bool uses_blas = false;
  bool uses_tensor_cores = false;

  /// Number of partial sums of squared norms, of all layers together.
  std::int32_t parts() const { return group_parts.back(); }
  /// Reserves n partial sums for the squared norm of the next layer with parameters, and returns
  /// the index of the first. Call once per such layer.
  std::int32_t reserve_parts(int n) {
    group_parts.push_back(parts() + n);
    return group_parts[group_parts.size() - 2];
  }
  /// Returned by reserve_unread_parts() as the index of partial sums that no kernel reads: those of
  /// frozen layers, which share memory.
  static constexpr std::int32_t kUnreadParts = -1;
  std::int32_t unread_parts = 0;
  std::int32_t reserve_unread_parts(int n) {
    unread_parts = std::max(unread_parts, n);
    return kUnreadParts;
  }
  /// Adds n floats to one of the sizes above and returns the offset of the first.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }

  /// Adds a weight matrix to those that are packed before each forward pass. Returns the offset of
  /// its packed copy [floats], a multiple of 16 bytes.
  std::int64_t pack(PackPlan p) {
    const std::int64_t floats =
        p.keeps_order ? std::int64_t{p.terms} * p.columns : packed_floats(p.terms, p.columns);
    p.packed_at = reserve(packed, (floats + 3) / 4 * 4);
    packs.push_back(p);
    return p.packed_at;
  }

  /// Makes a table of the offsets at(0), ..., at(n - 1). Returns an axis that maps index i to entry
  /// i of it.
  template <class At>
  AxisPlan table(std::int64_t n, const At& at) {
    const auto first = static_cast<std::int64_t>(tables.size());
    for (std::int64_t i = 0; i < n; ++i) tables.push_back(narrow(at(static_cast<int>(i))));
    return {.table = first};
  }
  /// Returns the axis that maps the numbers of one example, in PyTorch's order (channel, row,
  /// column), to their offsets in planes `p`.
  AxisPlan flat(const Planes& p) {
    if (p.border == 0) return strided(1);
    return table(p.pixels(), [&](int i) { return p.pixel_offset(i); });
  }
};

}  // namespace cudp::cuda
