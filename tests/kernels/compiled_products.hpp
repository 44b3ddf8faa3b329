#pragma once
// The kernels of products and weight gradients that the CUDA engine contains
// (runtime/device/cuda/products.cu). Tests call these, in place of compiling them again.
#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"

namespace cudp::inline CUDP_SIMT {

#define CUDP_COMPILED_GRADIENTS(...)                                                            \
  extern template __global__ void weight_gradient_norm_kernel<__VA_ARGS__>(WeightGradientNorm); \
  extern template __global__ void weight_gradient_sum_kernel<__VA_ARGS__>(WeightGradientSum);   \
  extern template __global__ void weight_gradient_rows_kernel<__VA_ARGS__>(WeightGradientRows)
#define CUDP_COMPILED_PRODUCT(...) \
  extern template __global__ void product_kernel<__VA_ARGS__>(device::Product)

CUDP_COMPILED_PRODUCT(FloatTile<16>);
CUDP_COMPILED_PRODUCT(FloatTile<32>);
CUDP_COMPILED_PRODUCT(FloatTile<64>);
CUDP_COMPILED_PRODUCT(FloatTile<kThinColumns, kThinTerms>);
CUDP_COMPILED_PRODUCT(TensorTile<16>);
CUDP_COMPILED_PRODUCT(TensorTile<32, kTallTerms>);
CUDP_COMPILED_PRODUCT(TensorTile<64, kTallTerms>);
CUDP_COMPILED_PRODUCT(TensorTile<kThinColumns, kThinTerms>);
CUDP_COMPILED_GRADIENTS(FloatTile<16>);
CUDP_COMPILED_GRADIENTS(FloatTile<32>);
CUDP_COMPILED_GRADIENTS(FloatTile<64>);
CUDP_COMPILED_GRADIENTS(TensorTile<16>);
CUDP_COMPILED_GRADIENTS(TensorTile<32>);
CUDP_COMPILED_GRADIENTS(TensorTile<64>);
extern template __global__ void patch_product_kernel<PixelTile<32>>(PatchProduct);
extern template __global__ void patch_product_kernel<PixelTile<64>>(PatchProduct);
extern template __global__ void patch_gradient_norm_kernel<PatchTile<32>>(WeightGradientNorm);
extern template __global__ void patch_gradient_norm_kernel<PatchTile<64>>(WeightGradientNorm);
extern template __global__ void patch_gradient_sum_kernel<PatchTile<kPatchSumColumns>>(
    WeightGradientSum);
extern template __global__ void patch_gradient_rows_kernel<PatchTile<kPatchSumColumns>>(
    WeightGradientRows);

#undef CUDP_COMPILED_GRADIENTS
#undef CUDP_COMPILED_PRODUCT

}  // namespace cudp::inline CUDP_SIMT
