#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A convolution, given both as a matrix product (GatherGemm) and by its geometry, so that a kernel
/// can use a faster method than the product. The input has a border of `pad` zeros. In the forward
/// pass GatherGemm::out is the output y, in the weight gradient it is dweight [taps][channels].
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
