#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// Product of a convolution, and its geometry, which a faster implementation for some shapes uses.
/// The input's border is `pad`. Forward: out = y. Weight gradient: out = dweight, [taps][channels].
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
