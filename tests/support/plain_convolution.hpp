#pragma once
// Reference implementation of a library's convolution: plain loops.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/products/convolution_batch.hpp"

namespace cudp {

/// Computes a ConvolutionBatch. Memory of examples that do not exist may hold anything.
inline void convolve_plainly(const ConvolutionBatch& a, bool tf32) {
  const auto taken = [&](float v) {
    if (!tf32 || !std::isfinite(v)) return v;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    std::memcpy(&v, &bits, sizeof bits);
    return v;
  };
  const std::ptrdiff_t image = std::ptrdiff_t{a.height} * a.width;
  float* y = a.y;
  for (int e = 0; e < a.examples; ++e)
    for (int j = 0; j < a.columns; ++j)
      for (int oy = 0; oy < a.out_height(); ++oy)
        for (int ox = 0; ox < a.out_width(); ++ox) {
          float sum = 0.0f;
          for (int c = 0; c < a.channels; ++c)
            for (int k = 0; k < a.kernel * a.kernel; ++k) {
              const int iy = oy * a.stride - a.pad + k / a.kernel;
              const int ix = ox * a.stride - a.pad + k % a.kernel;
              if (iy < 0 || iy >= a.height || ix < 0 || ix >= a.width) continue;
              const float x = a.x[(std::ptrdiff_t{e} * a.channels + c) * image +
                                  std::ptrdiff_t{iy} * a.width + ix];
              const float w =
                  a.weight[(std::ptrdiff_t{j} * a.channels + c) * a.kernel * a.kernel + k];
              sum += taken(x) * taken(w);
            }
          *y++ = sum;
        }
}

}  // namespace cudp
