#pragma once
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns the images of tests/golden/make_scattering.py: a texture, a disc and a ramp.
inline Dataset scatter_images(int colours, int height, int width) {
  Dataset d;
  d.shape = {colours, height, width};
  d.classes = 2;
  d.labels = {0, 1, 0};
  for (int image = 0; image < 3; ++image)
    for (int c = 0; c < colours; ++c)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const int texture = (37 * c + 11 * y * y + 7 * x * x + 13 * x * y + 5 * y) % 256;
          const int dy = 3 * y - height - c;
          const int dx = 2 * x - width + c;
          const int disc = dy * dy + dx * dx < height * width / 2 ? 255 : 0;
          const int ramp = (8 * x + 3 * y + 40 * c) % 256;
          d.bytes.push_back(static_cast<std::uint8_t>(image == 0   ? texture
                                                      : image == 1 ? disc
                                                                   : ramp));
        }
  return d;
}

/// Returns the same images as floats.
inline Dataset as_floats(Dataset d) {
  for (const std::uint8_t b : d.bytes)
    d.floats.push_back(d.scale * static_cast<float>(b) + d.shift);
  d.bytes.clear();
  return d;
}

}  // namespace cudp
