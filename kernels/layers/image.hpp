#pragma once
#include <cstdint>

namespace cudp {

/// How the CPU keeps one example's activations: channel last, [height + 2 border][width + 2 border]
/// [stride] floats. The border holds zeros (a convolution's padding), as do the channels from
/// `channels` to `stride`. A flat vector of n numbers is n channels of one pixel.
struct ImageLayout {
  int channels = 0;
  int height = 1;
  int width = 1;
  int stride = 0;  ///< floats from pixel to pixel, >= channels; a multiple of 16 but for inputs
  int border = 0;

  std::int64_t row() const { return static_cast<std::int64_t>(width + 2 * border) * stride; }
  std::int64_t size() const { return (height + 2 * border) * row(); }
  /// Offset of a pixel's first channel; (0, 0) is the first pixel inside the border.
  std::int64_t at(int y, int x) const {
    return (y + border) * row() + static_cast<std::int64_t>(x + border) * stride;
  }
};

/// One example from the data set, channel by channel, to an image: x = scale * byte + shift, or the
/// float as it is. Writes pixels only, never border or padding channels.
struct LoadImage {
  const std::uint8_t* bytes;  ///< [channels, height, width]; null if floats
  const float* floats;
  float scale;
  float shift;
  float* out;
  ImageLayout layout;
};

}  // namespace cudp
