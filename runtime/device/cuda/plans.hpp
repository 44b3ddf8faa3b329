#pragma once
// Plans: plain data, made on the host, that state where in memory a layer finds its numbers. They
// do not depend on CUDA.
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

/// Maps an index along one dimension of a matrix to an offset in memory. It becomes an Axis
/// (kernels/products/tile.hpp) once device memory is allocated; until then, `table` is an offset in
/// CudaStorage::tables instead of an address, or -1 if there is no table.
struct AxisPlan {
  std::int64_t table = -1;
  std::int32_t period = 0;
  std::int32_t outer = 0;
  std::int32_t inner = 1;
};
/// Describes where a matrix product finds the elements of one of its two matrices. It becomes a
/// Factor (kernels/products/tile.hpp) once device memory is allocated. `line` maps the index of a
/// row or column of the result to an offset, `term` the index of a summand.
struct FactorPlan {
  AxisPlan line;
  AxisPlan term;
  bool along_terms = false;
  Precision as = Precision::fp32;  ///< format of the numbers
};

/// Returns the mapping from index n to offset n * step.
inline AxisPlan strided(std::int64_t step) { return {.inner = narrow(step)}; }
/// Returns the mapping `axis`, repeated for every example of a micro-batch: each example has
/// `period` indices, and consecutive examples are `apart` elements apart in memory.
inline AxisPlan each(AxisPlan axis, std::int64_t period, std::int64_t apart) {
  axis.period = narrow(period);
  axis.outer = narrow(apart);
  return axis;
}

/// Arguments of a matrix product with a layer's weights (device::Product), as far as they are known
/// before memory is allocated.
struct ProductPlan {
  FactorPlan a;
  FactorPlan b;
  AxisPlan out_row;
  AxisPlan out_column;
  /// Offsets in memory of the rows and columns of y, the output of the activation before this
  /// layer. Used only if the epilogue multiplies the result by that activation's derivative, which
  /// it computes from y.
  AxisPlan y_row = {};
  AxisPlan y_column = {};
  std::int32_t rows_per_example = 0;
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  PixelPatch patch = {};         ///< patch that the product uses; lines = 0: it uses the tables
  std::int64_t packed_at = 0;    ///< offset of the packed weight; used only with a patch
  std::int64_t rounded_at = -1;  ///< offset of the rounded weight, for TF32 without a patch, or -1
};

/// Describes a copy of a weight matrix, rounded to TF32 or fp16, that is made before each step. If
/// keeps_order is false, the copy is in the order in which the kernel of a product reads it. If
/// keeps_order is true, it is in the original order. One launch makes all copies of a network. It
/// is omitted if all copies have keeps_order; the products then round weights on every load
/// instead.
struct PackPlan {
  FactorPlan weight;
  std::int64_t weight_at = 0;  ///< offset in the parameters
  std::int32_t terms = 0;
  std::int32_t columns = 0;
  std::int64_t packed_at = 0;
  bool keeps_order = false;
};

/// Arguments of the kernels that compute a layer's weight gradient (WeightGradient), as far as they
/// are known before memory is allocated; and the precision in which the gradient's norm and sum are
/// computed.
struct GradientPlan {
  FactorPlan x;
  FactorPlan dy;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t terms_per_example = 0;
  Precision precision = Precision::fp32;
  ConvPatch patch = {};  ///< patch that the gradient uses; lines = 0: it uses the tables
};

/// A dense layer with at least this number of weights uses the device's BLAS library.
inline constexpr std::int64_t kLargeDense = 1 << 20;
/// Number of examples that each call of the BLAS library multiplies, for dense layers of at least
/// kLargeDense weights. It is always the same, so that an example's result does not depend on the
/// number of examples.
inline constexpr int kSlab = 256;

/// Minimum number of rows (inputs; for a convolution, channels times kernel positions) and of
/// columns (outputs or output channels) of a weight matrix for which tensor cores are used if TF32
/// is requested. With fewer, most of the work of a thread block would be padding. The value was not
/// chosen by measurement.
inline constexpr int kMinTensorSide = 16;

/// Returns the shared memory that one block may use to compute a convolution from patches, parts of
/// the image [bytes]. With it, three such blocks fit a multiprocessor of an H200, and two fit one
/// of an A100. limits: limits of the device.
inline std::size_t patch_shared_bytes(const DeviceLimits& limits) {
  return std::min(limits.shared_bytes, std::size_t{72} * 1024);
}

/// An edge: the array of activations between two layers, and that of their gradients. If a layer
/// works in place (overwrites its input), its input and its output are the same edge.
struct CudaEdge {
  std::size_t number = 0;
  Planes value;  ///< its border is the padding of the convolution that reads it
  /// Layout of the gradients in memory. They have a border of zeros if a convolution wrote the
  /// activations, because that convolution computes the gradient of its own input from them, and
  /// its kernel reads beyond the image's edge.
  Planes gradient;
  bool has_gradient = false;
  /// Precision to which the activations are rounded when they are written: TF32 if a layer
  /// multiplies them with tensor cores and the layer that writes them can round them.
  Precision value_as = Precision::fp32;
  Precision gradient_as = Precision::fp32;
};

/// Choices of a network's engine that determine the memory and the kernels of each layer.
struct LayoutChoices {
  /// Precision of matrix products. tf32 is used only for layers that are large enough to gain from
  /// it (kMinTensorSide) and for those that use BLAS. Everything that is not a matrix product is
  /// computed in fp32.
  Precision precision = Precision::fp32;
  std::int64_t large_dense = kLargeDense;
  DeviceLimits limits = {};
  /// Whether gradients are transformed before clipping (coordinate-wise clipping). If so,
  /// convolutions are not computed from patches, because those kernels have no registers to spare
  /// for the transform.
  bool transforms = false;
  /// Whether the forward passes of convolutions and recurrent layers are computed by cuDNN. Only
  /// for an engine that evaluates and does not train.
  bool evaluates_by_library = false;
};

/// Sizes of the device memory that the layers of a network need, and the index tables that they
/// read. Each layer reserves its own part.
struct CudaStorage {
  std::vector<std::int32_t> tables;
  /// [groups + 1], for each trained layer the index of its first partial sum, and at the end the
  /// number of all partial sums. Passed to the kernel with the arguments device::Clip.
  std::vector<std::int32_t> group_parts{0};
  std::int64_t saved = 0;  ///< floats per example that forward() saves for backward()
  /// Number of floats per example for the parameter gradients of layers that store an example's
  /// whole gradient.
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

  /// Returns the number of partial sums of squared gradient norms per example, of all layers
  /// together.
  std::int32_t parts() const { return group_parts.back(); }
  /// Reserves n partial sums for the squared norm of the next layer with parameters, and returns
  /// the index of the first one. Call it once per such layer, in the order of the layers.
  std::int32_t reserve_parts(int n) {
    group_parts.push_back(parts() + n);
    return group_parts[group_parts.size() - 2];
  }
  /// Index that reserve_unread_parts() returns: it stands for the partial sums of all frozen
  /// layers, which share the same memory and are never read.
  static constexpr std::int32_t kUnreadParts = -1;
  std::int32_t unread_parts = 0;  ///< largest number of such partial sums of a layer
  std::int32_t reserve_unread_parts(int n) {
    unread_parts = std::max(unread_parts, n);
    return kUnreadParts;
  }
  /// Adds n floats to `size`, one of the sizes of this struct. Returns the offset of the first of
  /// these floats.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }

  /// Adds the weight matrix p to those that are copied (rounded and reordered for tensor cores)
  /// before each step. Returns the offset of the copy [floats], a multiple of 16 bytes.
  std::int64_t pack(PackPlan p) {
    const std::int64_t floats =
        p.keeps_order ? std::int64_t{p.terms} * p.columns : packed_floats(p.terms, p.columns);
    p.packed_at = reserve(packed, (floats + 3) / 4 * 4);
    packs.push_back(p);
    return p.packed_at;
  }

  /// Stores a table of the n offsets at(0), ..., at(n - 1). Returns a mapping that gives index i
  /// the i-th offset of the table. At: type of the function at().
  template <class At>
  AxisPlan table(std::int64_t n, const At& at) {
    const auto first = static_cast<std::int64_t>(tables.size());
    for (std::int64_t i = 0; i < n; ++i) tables.push_back(narrow(at(static_cast<int>(i))));
    return {.table = first};
  }
  /// Returns a mapping for one example's activations with layout p: it gives the n-th number in
  /// PyTorch's order (channel, row, column) its offset in memory.
  AxisPlan flat(const Planes& p) {
    if (p.border == 0) return strided(1);
    return table(p.pixels(), [&](int i) { return p.pixel_offset(i); });
  }
};

}  // namespace cudp::cuda
