#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A convolution, given as a matrix product (GatherGemm) and by its geometry, so that a kernel can
/// use a faster method than the product. The input's border is `pad`. Forward: out = y. Weight
/// gradient: out = dweight, [taps][channels].
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
