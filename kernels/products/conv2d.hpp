#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A convolution as a matrix product, and its geometry, for which there may be a faster
/// implementation than the product. The input's border is `pad`. Forward: out = y. Weight gradient:
/// out = dweight, [taps][channels].
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
