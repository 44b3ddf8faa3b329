#include <algorithm>

#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/products.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

const ProductKernels& product_kernels() {
  static constexpr ProductKernels kernels{
      .product = {{{product_kernel<FloatTile<16>>, product_kernel<FloatTile<32>>,
                    product_kernel<FloatTile<64>>},
                   {product_kernel<TensorTile<16>>, product_kernel<TensorTile<32, kTallTerms>>,
                    product_kernel<TensorTile<64, kTallTerms>>}}},
      .thin = {product_kernel<FloatTile<kThinColumns, kThinTerms>>,
               product_kernel<TensorTile<kThinColumns, kThinTerms>>},
      .norm = {{{weight_gradient_norm_kernel<FloatTile<16>>,
                 weight_gradient_norm_kernel<FloatTile<32>>,
                 weight_gradient_norm_kernel<FloatTile<64>>},
                {weight_gradient_norm_kernel<TensorTile<16>>,
                 weight_gradient_norm_kernel<TensorTile<32>>,
                 weight_gradient_norm_kernel<TensorTile<64>>}}},
      .sum = {{{weight_gradient_sum_kernel<FloatTile<16>>,
                weight_gradient_sum_kernel<FloatTile<32>>,
                weight_gradient_sum_kernel<FloatTile<64>>},
               {weight_gradient_sum_kernel<TensorTile<16>>,
                weight_gradient_sum_kernel<TensorTile<32>>,
                weight_gradient_sum_kernel<TensorTile<64>>}}},
      .sum_blocks =
          {{{FloatTile<16>::kSumBlocks, FloatTile<32>::kSumBlocks, FloatTile<64>::kSumBlocks},
            {TensorTile<16>::kSumBlocks, TensorTile<32>::kSumBlocks, TensorTile<64>::kSumBlocks}}},
      .rows = {{{weight_gradient_rows_kernel<FloatTile<16>>,
                 weight_gradient_rows_kernel<FloatTile<32>>,
                 weight_gradient_rows_kernel<FloatTile<64>>},
                {weight_gradient_rows_kernel<TensorTile<16>>,
                 weight_gradient_rows_kernel<TensorTile<32>>,
                 weight_gradient_rows_kernel<TensorTile<64>>}}},
      .pack = pack_weights_kernel,
      .patch_product = {patch_product_kernel<PixelTile<32>>, patch_product_kernel<PixelTile<64>>},
      .patch_norm = {patch_gradient_norm_kernel<PatchTile<32>>,
                     patch_gradient_norm_kernel<PatchTile<64>>},
      .patch_sum = patch_gradient_sum_kernel<PatchTile<kPatchSumColumns>>,
      .patch_rows = patch_gradient_rows_kernel<PatchTile<kPatchSumColumns>>};
  return kernels;
}

}  // namespace

CudaProducts::CudaProducts(Gpu& gpu, const CudaStorage& storage)
    : gpu_(gpu),
      kernels_(product_kernels()),
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
    gpu.allow_shared(kernels_.patch_sum, shared);
    gpu.allow_shared(kernels_.patch_rows, shared);
  }
}

void CudaProducts::pack(const float* parameters) {
  if (weights_.size() == 0) return;
  launch(gpu_, "pack weights", kernels_.pack,
         PackWeights{.weights = weights_.get(),
                     .count = static_cast<std::int32_t>(weights_.size()),
                     .max_floats = max_packed_,
                     .parameters = parameters,
                     .packed = packed_.get()});
}

device::Product CudaProducts::product(const Batch& batch, const ProductPlan& p, const float* a,
                                      const float* weight, const float* bias, float* out,
                                      const Epilogue& epilogue) const {
  return {.batch = batch,
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
}

void CudaProducts::multiply(const char* name, const Batch& batch, const ProductPlan& p,
                            Precision precision, const float* a, const float* weight,
                            const float* bias, float* out, const Epilogue& epilogue,
                            const Planes& out_planes, const Planes& y_planes,
                            const float* logit_gradients, std::int32_t outputs) {
  device::Product args = product(batch, p, a, weight, bias, out, epilogue);
  if (precision == Precision::tf32 && p.rounded_at >= 0 && weights_.size() > 0) {
    args.b.data = packed_.get() + p.rounded_at;
    args.b.as = Precision::tf32;
  }
  if (p.patch.lines > 0) {
    launch(gpu_, name, patch_product(p.columns),
           PatchProduct{.batch = batch,
                        .patch = spread(p.patch, batch.capacity, p.columns,
                                        2 * gpu_.limits().multiprocessors),
                        .x = a,
                        .packed = packed_.get() + p.packed_at,
                        .bias = bias,
                        .out = out,
                        .out_planes = out_planes,
                        .epilogue = epilogue,
                        .y_planes = y_planes,
                        .logit_gradients = logit_gradients,
                        .outputs = outputs});
    return;
  }
  if (is_thin(args)) {
    launch(gpu_, name, kernels_.thin[static_cast<std::size_t>(precision)], args);
    return;
  }
  if (precision == Precision::tf32 && p.columns > 16) args.tile_rows = kTallRows;
  launch(gpu_, name, tiled(kernels_.product, precision, p.columns), args);
}

WeightGradient CudaProducts::weight_gradient(const Batch& batch, const GradientPlan& g,
                                             const float* x, const float* dy) const {
  return {.batch = batch,
          .x = factor(x, g.x),
          .dy = factor(dy, g.dy),
          .rows = g.rows,
          .columns = g.columns,
          .terms_per_example = g.terms_per_example,
          .patch = g.patch};
}

void CudaProducts::gradient_norm(const GradientPlan& g, const WeightGradientNorm& args) {
  launch(gpu_, "weight gradient norm",
         g.patch.lines > 0 ? patch_norm(g) : tiled(kernels_.norm, g.precision, g.columns), args);
}

void CudaProducts::gradient_sum(const GradientPlan& g, const WeightGradientSum& args) {
  launch(gpu_, "weight gradient sum",
         g.patch.lines > 0 ? kernels_.patch_sum : tiled(kernels_.sum, g.precision, g.columns),
         args);
}

void CudaProducts::gradient_rows(const GradientPlan& g, const WeightGradientRows& args) {
  launch(gpu_, "weight gradients",
         g.patch.lines > 0 ? kernels_.patch_rows : tiled(kernels_.rows, g.precision, g.columns),
         args);
}

std::int32_t CudaProducts::stripes(const GradientPlan& g, int capacity) const {
  const bool by_patches = g.patch.lines > 0;
  const int width = by_patches ? kPatchSumColumns : 0;
  return gradient_stripes(gradient_tiles(g.rows, g.columns, width), capacity,
                          by_patches ? PatchTile<kPatchSumColumns>::kBlocks
                                     : tiled(kernels_.sum_blocks, g.precision, g.columns),
                          gpu_.limits());
}

CudaProducts::Kernel<WeightGradientNorm> CudaProducts::patch_norm(const GradientPlan& g) const {
  return patched(kernels_.patch_norm, g.columns);
}

CudaProducts::Kernel<PatchProduct> CudaProducts::patch_product(int columns) const {
  return patched(kernels_.patch_product, columns);
}

}  // namespace cudp::cuda::inline CUDP_SIMT
