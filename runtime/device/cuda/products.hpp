#pragma once
// The matrix products of a network's layers: which kernel makes each, and the tables they need.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/plans.hpp"

namespace cudp::cuda {

template <class Gpu>
class CudaProducts {
 public:
  CudaProducts(Gpu& gpu, const CudaStorage& storage)
      : gpu_(gpu), tables_(gpu, storage.tables.size()), packed_(gpu, most_packed(storage)) {
    tables_.upload(storage.tables);
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
    return {data, axis(p.line), axis(p.term), p.along_terms};
  }

  void fill_scratch() { packed_.fill_scratch(); }

  /// out = bias + a weight. out_planes: where p's rows and columns lie, for a patched plan.
  void multiply(const char* name, const Batch& batch, const ProductPlan& p, Precision precision,
                const float* a, const float* weight, const float* bias, float* out,
                const Planes& out_planes = {}) {
    device::Product args{.batch = batch,
                         .a = factor(a, p.a),
                         .b = factor(weight, p.b),
                         .bias = bias,
                         .out = out,
                         .out_row = axis(p.out_row),
                         .out_column = axis(p.out_column),
                         .rows_per_example = p.rows_per_example,
                         .terms = p.terms,
                         .columns = p.columns};
    if (is_thin(args)) {
      launch(gpu_, name, kThinKernels[static_cast<int>(precision)], args);
      return;
    }
    if (p.patch.lines > 0) {
      launch(
          gpu_, "pack weights", pack_weights_kernel,
          PackWeights{
              .weight = args.b, .terms = p.terms, .columns = p.columns, .packed = packed_.get()});
      launch(gpu_, name, patch_product(p.columns),
             PatchProduct{.batch = batch,
                          .patch = p.patch,
                          .x = a,
                          .packed = packed_.get(),
                          .bias = bias,
                          .out = out,
                          .out_planes = out_planes});
      return;
    }
    if (precision == Precision::tf32 && p.columns > 16) args.tile_rows = kTallRows;
    launch(gpu_, name, tiled(kProductKernels, precision, p.columns), args);
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
           g.patch.lines > 0 ? patch_norm(g) : tiled(kNormKernels, g.precision, g.columns), args);
  }
  void gradient_sum(const GradientPlan& g, const WeightGradientSum& args) {
    launch(gpu_, "weight gradient sum",
           g.patch.lines > 0 ? patch_sum(g) : tiled(kSumKernels, g.precision, g.columns), args);
  }
  void gradient_rows(const GradientPlan& g, const WeightGradientRows& args) {
    launch(gpu_, "weight gradients",
           g.patch.lines > 0 ? patch_rows(g) : tiled(kRowsKernels, g.precision, g.columns), args);
  }
  /// Examples that a block of gradient_sum takes.
  static int examples_per_block(const GradientPlan& g) {
    return g.patch.lines > 0 ? kPatchExamples : cudp::examples_per_block(g.terms_per_example);
  }

 private:
  template <class Args>
  using Kernel = void (*)(Args);
  /// The kernels by Precision, then by tile_columns. A layer's norm and its sum must be of one
  /// precision, and of one row here; see WeightGradientSum.
  static constexpr Kernel<device::Product> kProductKernels[2][3] = {
      {product_kernel<FloatTile<16>>, product_kernel<FloatTile<32>>, product_kernel<FloatTile<64>>},
      {product_kernel<TensorTile<16>>, product_kernel<TensorTile<32, kTallTerms>>,
       product_kernel<TensorTile<64, kTallTerms>>}};
  static constexpr Kernel<device::Product> kThinKernels[2] = {
      product_kernel<FloatTile<kThinColumns, kThinTerms>>,
      product_kernel<TensorTile<kThinColumns, kThinTerms>>};
  static constexpr Kernel<WeightGradientNorm> kNormKernels[2][3] = {
      {weight_gradient_norm_kernel<FloatTile<16>>, weight_gradient_norm_kernel<FloatTile<32>>,
       weight_gradient_norm_kernel<FloatTile<64>>},
      {weight_gradient_norm_kernel<TensorTile<16>>, weight_gradient_norm_kernel<TensorTile<32>>,
       weight_gradient_norm_kernel<TensorTile<64>>}};
  static constexpr Kernel<WeightGradientSum> kSumKernels[2][3] = {
      {weight_gradient_sum_kernel<FloatTile<16>>, weight_gradient_sum_kernel<FloatTile<32>>,
       weight_gradient_sum_kernel<FloatTile<64>>},
      {weight_gradient_sum_kernel<TensorTile<16>>, weight_gradient_sum_kernel<TensorTile<32>>,
       weight_gradient_sum_kernel<TensorTile<64>>}};
  static constexpr Kernel<WeightGradientRows> kRowsKernels[2][3] = {
      {weight_gradient_rows_kernel<FloatTile<16>>, weight_gradient_rows_kernel<FloatTile<32>>,
       weight_gradient_rows_kernel<FloatTile<64>>},
      {weight_gradient_rows_kernel<TensorTile<16>>, weight_gradient_rows_kernel<TensorTile<32>>,
       weight_gradient_rows_kernel<TensorTile<64>>}};
  /// The kernels by patch_columns.
  static constexpr Kernel<WeightGradientNorm> kPatchNormKernels[2] = {
      patch_gradient_norm_kernel<PatchTile<32, 32>>, patch_gradient_norm_kernel<PatchTile<64, 64>>};
  static constexpr Kernel<WeightGradientSum> kPatchSumKernels[2] = {
      patch_gradient_sum_kernel<PatchTile<32, 32>>, patch_gradient_sum_kernel<PatchTile<64, 32>>};
  static constexpr Kernel<WeightGradientRows> kPatchRowsKernels[2] = {
      patch_gradient_rows_kernel<PatchTile<32, 32>>, patch_gradient_rows_kernel<PatchTile<64, 32>>};
  static constexpr Kernel<PatchProduct> kPatchProductKernels[2] = {
      patch_product_kernel<PixelTile<32>>, patch_product_kernel<PixelTile<64>>};

  static Kernel<WeightGradientNorm> patch_norm(const GradientPlan& g) {
    return kPatchNormKernels[patch_columns(g.columns) / 64];
  }
  static Kernel<WeightGradientSum> patch_sum(const GradientPlan& g) {
    return kPatchSumKernels[patch_columns(g.columns) / 64];
  }
  static Kernel<WeightGradientRows> patch_rows(const GradientPlan& g) {
    return kPatchRowsKernels[patch_columns(g.columns) / 64];
  }
  static Kernel<PatchProduct> patch_product(int columns) {
    return kPatchProductKernels[patch_columns(columns) / 64];
  }
  template <class Args>
  static Kernel<Args> tiled(const Kernel<Args> (&kernels)[2][3], Precision precision, int columns) {
    return kernels[static_cast<int>(precision)][tile_columns(columns) / 32];
  }

  /// Weights are packed for one product after the other.
  static std::size_t most_packed(const CudaStorage& storage) {
    int max_floats = 0;
    for (const ProductPlan& p : storage.patched_products)
      max_floats = std::max(max_floats, packed_floats(p.terms, p.columns));
    return static_cast<std::size_t>(max_floats);
  }

  Gpu& gpu_;
  Buffer<Gpu, std::int32_t> tables_;
  Buffer<Gpu, float> packed_;  // see PackWeights
};

}  // namespace cudp::cuda
