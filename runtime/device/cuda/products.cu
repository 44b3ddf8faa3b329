#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"
#include "runtime/device/cuda/products.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

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
      .rows = {{{weight_gradient_rows_kernel<FloatTile<16>>,
                 weight_gradient_rows_kernel<FloatTile<32>>,
                 weight_gradient_rows_kernel<FloatTile<64>>},
                {weight_gradient_rows_kernel<TensorTile<16>>,
                 weight_gradient_rows_kernel<TensorTile<32>>,
                 weight_gradient_rows_kernel<TensorTile<64>>}}},
      .pack = pack_weights_kernel,
      .patch_product = {patch_product_kernel<PixelTile<32>>, patch_product_kernel<PixelTile<64>>},
      .patch_norm = {patch_gradient_norm_kernel<PatchTile<32, 32>>,
                     patch_gradient_norm_kernel<PatchTile<64, 64>>},
      .patch_sum = {patch_gradient_sum_kernel<PatchTile<32, 32>>,
                    patch_gradient_sum_kernel<PatchTile<64, 32>>},
      .patch_rows = {patch_gradient_rows_kernel<PatchTile<32, 32>>,
                     patch_gradient_rows_kernel<PatchTile<64, 32>>}};
  return kernels;
}

}  // namespace cudp::cuda::inline CUDP_SIMT
