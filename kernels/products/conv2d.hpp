#pragma once
#include "kernels/layers/image.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A convolution's product, and its geometry, by which a faster way through it may be chosen. The
/// input's border is `pad`. Forward: out = y. Weight gradient: out = dweight, [taps][channels].
struct Convolution {
  ImageLayout in;
  ImageLayout out;
  int kernel;
  int stride;
  GatherGemm product;
};

}  // namespace cudp
