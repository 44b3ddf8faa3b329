#pragma once
// The matrix products of a network's layers: which kernel makes each, and the tables they need.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/patch_product.hpp"
#include "kernels/products/tiled_product.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/plans.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The kernels of products, for launches. By Precision, then by tile_columns; those of patches by
/// patch_columns. A layer's norm and its sum must be of one precision, and of one row here; see
/// WeightGradientSum.
struct ProductKernels {
  template <class Args>
  using Kernel = void (*)(Args);
  template <class Args>
  using Tiled = std::array<std::array<Kernel<Args>, 3>, 2>;
  template <class Args>
  using Patched = std::array<Kernel<Args>, 2>;

  Tiled<device::Product> product;
  Patched<device::Product> thin;  ///< by Precision
  Tiled<WeightGradientNorm> norm;
  Tiled<WeightGradientSum> sum;
  Tiled<WeightGradientRows> rows;
  Kernel<PackWeights> pack;
  Patched<PatchProduct> patch_product;
  Patched<WeightGradientNorm> patch_norm;
  Patched<WeightGradientSum> patch_sum;
  Patched<WeightGradientRows> patch_rows;
};

/// Defined in a source of its own, since they are a large part of what there is to compile.
const ProductKernels& product_kernels();

class CudaProducts {
 public:
  CudaProducts(Gpu& gpu, const CudaStorage& storage)
      : gpu_(gpu),
        tables_(gpu, storage.tables.size()),
        weights_(gpu, storage.patched_products.empty() ? 0 : storage.packs.size()),
        packed_(gpu, weights_.size() == 0 ? 0 : static_cast<std::size_t>(storage.packed)) {
    tables_.upload(storage.tables);
    if (weights_.size() > 0) {
      std::vector<PackedWeight> weights;
      for (const PackPlan& p : storage.packs) {
        weights.push_back({.weight = factor(nullptr, p.weight),
                           .weight_at = p.weight_at,
                           .terms = p.terms,
                           .columns = p.columns,
                           .packed_at = p.packed_at,
                           .keeps_order = p.keeps_order,
                           .steps = AnyDivisor(patch_steps(p.terms))});
        max_packed_ = std::max(max_packed_, packed_floats(weights.back()));
      }
      weights_.upload(weights);
    }
    const std::size_t shared = patch_shared_bytes(gpu.limits());
    for (const ProductPlan& p : storage.patched_products)
      gpu.allow_shared(patch_product(p.columns), shared);
    for (const GradientPlan& g : storage.patched_gradients) {
      gpu.allow_shared(patch_norm(g), shared);
      gpu.allow_shared(patch_sum(g), shared);
      gpu.allow_shared(patch_rows(g), shared);
    }
  }

  Axis axis(const AxisPlan& p) const {
    return {p.table >= 0 ? tables_.get() + p.table : nullptr, p.period, p.outer, p.inner};
  }
  Factor factor(const float* data, const FactorPlan& p) const {
    return {data, axis(p.line), axis(p.term), p.along_terms, p.as};
  }

  void fill_scratch() { packed_.fill_scratch(); }

  /// Packs the weights of products by tensor cores, of a network's parameters [d]: before those.
  void pack(const float* parameters) {
    if (weights_.size() == 0) return;
    launch(gpu_, "pack weights", kernels_.pack,
           PackWeights{.weights = weights_.get(),
                       .count = static_cast<std::int32_t>(weights_.size()),
                       .max_floats = max_packed_,
                       .parameters = parameters,
                       .packed = packed_.get()});
  }

  /// out = bias + a weight, then the epilogue. out_planes, y_planes: where p's rows and columns
  /// lie, and those of epilogue.y, for a patched plan.
  void multiply(const char* name, const Batch& batch, const ProductPlan& p, Precision precision,
                const float* a, const float* weight, const float* bias, float* out,
                const Epilogue& epilogue = {}, const Planes& out_planes = {},
                const Planes& y_planes = {}) {
    device::Product args{.batch = batch,
                         .a = factor(a, p.a),
                         .b = factor(weight, p.b),
                         .bias = bias,
                         .out = out,
                         .out_row = axis(p.out_row),
                         .out_column = axis(p.out_column),
                         .rows_per_example = p.rows_per_example,
                         .terms = p.terms,
                         .columns = p.columns,
                         .epilogue = epilogue,
                         .y_row = axis(p.y_row),
                         .y_column = axis(p.y_column)};
    if (precision == Precision::tf32 && p.rounded_at >= 0 && weights_.size() > 0) {
      args.b.data = packed_.get() + p.rounded_at;
      args.b.as = Precision::tf32;
    }
    if (is_thin(args)) {
      launch(gpu_, name, kernels_.thin[static_cast<std::size_t>(precision)], args);
      return;
    }
    if (p.patch.lines > 0) {
      launch(gpu_, name, patch_product(p.columns),
             PatchProduct{.batch = batch,
                          .patch = p.patch,
                          .x = a,
                          .packed = packed_.get() + p.packed_at,
                          .bias = bias,
                          .out = out,
                          .out_planes = out_planes,
                          .epilogue = epilogue,
                          .y_planes = y_planes});
      return;
    }
    if (precision == Precision::tf32 && p.columns > 16) args.tile_rows = kTallRows;
    launch(gpu_, name, tiled(kernels_.product, precision, p.columns), args);
  }

  /// x, dy: the activations and the gradient that `g` finds its numbers in.
  WeightGradient weight_gradient(const Batch& batch, const GradientPlan& g, const float* x,
                                 const float* dy) const {
    return {.batch = batch,
            .x = factor(x, g.x),
            .dy = factor(dy, g.dy),
            .rows = g.rows,
            .columns = g.columns,
            .terms_per_example = g.terms_per_example,
            .patch = g.patch};
  }
  void gradient_norm(const GradientPlan& g, const WeightGradientNorm& args) {
    launch(gpu_, "weight gradient norm",
           g.patch.lines > 0 ? patch_norm(g) : tiled(kernels_.norm, g.precision, g.columns), args);
  }
  void gradient_sum(const GradientPlan& g, const WeightGradientSum& args) {
    launch(gpu_, "weight gradient sum",
           g.patch.lines > 0 ? patch_sum(g) : tiled(kernels_.sum, g.precision, g.columns), args);
  }
  void gradient_rows(const GradientPlan& g, const WeightGradientRows& args) {
    launch(gpu_, "weight gradients",
           g.patch.lines > 0 ? patch_rows(g) : tiled(kernels_.rows, g.precision, g.columns), args);
  }
  /// Examples that a block of gradient_sum takes.
  static int examples_per_block(const GradientPlan& g) {
    return g.patch.lines > 0 ? kPatchExamples : cudp::examples_per_block(g.terms_per_example);
  }

 private:
  template <class Args>
  using Kernel = ProductKernels::Kernel<Args>;

  template <class Args>
  static Kernel<Args> patched(const ProductKernels::Patched<Args>& kernels, int columns) {
    return kernels[static_cast<std::size_t>(patch_columns(columns) / 64)];
  }
  Kernel<WeightGradientNorm> patch_norm(const GradientPlan& g) const {
    return patched(kernels_.patch_norm, g.columns);
  }
  Kernel<WeightGradientSum> patch_sum(const GradientPlan& g) const {
    return patched(kernels_.patch_sum, g.columns);
  }
  Kernel<WeightGradientRows> patch_rows(const GradientPlan& g) const {
    return patched(kernels_.patch_rows, g.columns);
  }
  Kernel<PatchProduct> patch_product(int columns) const {
    return patched(kernels_.patch_product, columns);
  }
  template <class Args>
  static Kernel<Args> tiled(const ProductKernels::Tiled<Args>& kernels, Precision precision,
                            int columns) {
    return kernels[static_cast<std::size_t>(precision)]
                  [static_cast<std::size_t>(tile_columns(columns) / 32)];
  }

  Gpu& gpu_;
  const ProductKernels& kernels_ = product_kernels();
  Buffer<std::int32_t> tables_;
  Buffer<PackedWeight> weights_;
  Buffer<float> packed_;  // see PackedWeight
  int max_packed_ = 0;         // floats of one
};

}  // namespace cudp::cuda::inline CUDP_SIMT
