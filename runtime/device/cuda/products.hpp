#pragma once
// The matrix products of a network's layers: which kernel makes each, and the tables they need.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda {

template <class Gpu>
class DeviceProducts {
 public:
  DeviceProducts(Gpu& gpu, const DeviceGraph& graph)
      : gpu_(gpu), tables_(gpu, graph.tables.size()), packed_(gpu, most_packed(graph)) {
    tables_.upload(graph.tables);
    const std::size_t shared = patch_shared_bytes(gpu.limits());
    for (const Op& op : graph.ops) {
      if (op.gradient.patch.lines > 0) {
        gpu.allow_shared(patch_norm(op), shared);
        gpu.allow_shared(patch_sum(op), shared);
      }
      for_each_patched(
          op, [&](const ProductPlan& p) { gpu.allow_shared(patch_product(p.columns), shared); });
    }
  }

  Axis axis(const AxisPlan& p) const {
    return {p.table >= 0 ? tables_.get() + p.table : nullptr, p.period, p.outer, p.inner};
  }
  Factor factor(const float* data, const FactorPlan& p) const {
    return {data, axis(p.line), axis(p.term), p.along_terms};
  }

  /// out = bias + a weight. out_planes: where p's rows and columns lie, for a patched plan.
  void multiply(const char* name, const Batch& batch, const ProductPlan& p, Precision precision,
                const float* a, const float* weight, const float* bias, float* out,
                const Planes& out_planes = {}) {
    BatchProduct args{batch,           factor(a, p.a),     factor(weight, p.b), bias,    out,
                      axis(p.out_row), axis(p.out_column), p.rows_per_example,  p.terms, p.columns};
    if (is_thin(args)) {
      start(name, kThinKernels[static_cast<int>(precision)], args);
      return;
    }
    if (p.patch.lines > 0) {
      start("pack weights", pack_weights_kernel,
            PackWeights{args.b, p.terms, p.columns, packed_.get()});
      start(name, patch_product(p.columns),
            PatchProduct{batch, p.patch, a, packed_.get(), bias, out, out_planes});
      return;
    }
    if (precision == Precision::tf32 && p.columns > 16) args.tile_rows = kTallRows;
    start_tiled(name, kProductKernels, precision, args, p.columns);
  }

  void gradient_norm(const Op& op, const WeightGradientNorm& a) {
    constexpr const char* kName = "weight gradient norm";
    if (op.gradient.patch.lines > 0)
      start(kName, patch_norm(op), a);
    else
      start_tiled(kName, kNormKernels, op.gradient.precision, a, op.gradient.columns);
  }
  void gradient_sum(const Op& op, const WeightGradientSum& a) {
    constexpr const char* kName = "weight gradient sum";
    if (op.gradient.patch.lines > 0)
      start(kName, patch_sum(op), a);
    else
      start_tiled(kName, kSumKernels, op.gradient.precision, a, op.gradient.columns);
  }
  /// Examples that a block of gradient_sum takes.
  static int examples_per_block(const Op& op) {
    return op.gradient.patch.lines > 0 ? kPatchExamples
                                       : cudp::examples_per_block(op.gradient.terms_per_example);
  }

 private:
  template <class Args>
  using Kernel = void (*)(Args);
  /// By Precision, then by tile_columns. A layer's norm and its sum must be of one precision, and
  /// of one row here; see WeightGradientSum.
  static constexpr Kernel<BatchProduct> kProductKernels[2][3] = {
      {batch_product_kernel<FloatTile<16>>, batch_product_kernel<FloatTile<32>>,
       batch_product_kernel<FloatTile<64>>},
      {batch_product_kernel<TensorTile<16>>, batch_product_kernel<TensorTile<32, kTallTerms>>,
       batch_product_kernel<TensorTile<64, kTallTerms>>}};
  static constexpr Kernel<BatchProduct> kThinKernels[2] = {
      batch_product_kernel<FloatTile<kThinColumns, kThinTerms>>,
      batch_product_kernel<TensorTile<kThinColumns, kThinTerms>>};
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
  /// By patch_columns.
  static constexpr Kernel<WeightGradientNorm> kPatchNormKernels[2] = {
      patch_gradient_norm_kernel<PatchTile<32, 32>>, patch_gradient_norm_kernel<PatchTile<64, 64>>};
  static constexpr Kernel<WeightGradientSum> kPatchSumKernels[2] = {
      patch_gradient_sum_kernel<PatchTile<32, 32>>, patch_gradient_sum_kernel<PatchTile<64, 32>>};
  static constexpr Kernel<PatchProduct> kPatchProductKernels[2] = {
      patch_product_kernel<PixelTile<32>>, patch_product_kernel<PixelTile<64>>};

  static Kernel<WeightGradientNorm> patch_norm(const Op& op) {
    return kPatchNormKernels[patch_columns(op.gradient.columns) / 64];
  }
  static Kernel<WeightGradientSum> patch_sum(const Op& op) {
    return kPatchSumKernels[patch_columns(op.gradient.columns) / 64];
  }
  static Kernel<PatchProduct> patch_product(int columns) {
    return kPatchProductKernels[patch_columns(columns) / 64];
  }

  template <class Body>
  static void for_each_patched(const Op& op, const Body& body) {
    if (op.forward.patch.lines > 0) body(op.forward);
    for (const ProductPlan& p : op.input_gradient)
      if (p.patch.lines > 0) body(p);
  }
  /// Weights are packed for one product after the other.
  static std::size_t most_packed(const DeviceGraph& graph) {
    int most = 0;
    for (const Op& op : graph.ops)
      for_each_patched(op, [&](const ProductPlan& p) {
        most = std::max(most, packed_floats(p.terms, p.columns));
      });
    return static_cast<std::size_t>(most);
  }

  template <class Args>
  void start(const char* name, Kernel<Args> kernel, const Args& args) {
    validate(args);
    gpu_.launch(name, kernel, launch_shape(args), args);
  }
  template <class Args>
  void start_tiled(const char* name, const Kernel<Args> (&kernels)[2][3], Precision precision,
                   const Args& args, int columns) {
    start(name, kernels[static_cast<int>(precision)][tile_columns(columns) / 32], args);
  }

  Gpu& gpu_;
  Buffer<Gpu, std::int32_t> tables_;
  Buffer<Gpu, float> packed_;  // see PackWeights
};

}  // namespace cudp::cuda
