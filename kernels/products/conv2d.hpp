#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A convolution, described in two ways: as a matrix product (GatherGemm), and by its geometry, so
/// that a kernel can use a faster method than the product. The input has a border of zeros, the
/// padding of the convolution. In the forward pass product.out is the output y; for the weight
/// gradient it is dweight [taps][channels], where a tap is a position of the kernel.
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
