#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/counted_planes.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Layout of one example's activations on the CPU, with the channels of a pixel next to each other:
/// [height + 2 border][width + 2 border][stride] floats. The border around the image, the padding
/// of a convolution, is zero. Each pixel has channels `channels` to stride - 1 as padding; they are
/// zero too, unless the example has numbers that are not finite. A flat vector of n numbers is n
/// channels of one pixel.
struct ImageLayout {
  int channels = 0;
  int height = 1;
  int width = 1;
  /// Distance in memory between consecutive pixels [floats], >= channels. It is a multiple of 16,
  /// except for the network's input.
  int stride = 0;
  int border = 0;  ///< width of the border of zeros [pixels]

  std::int64_t row() const { return static_cast<std::int64_t>(width + 2 * border) * stride; }
  std::int64_t size() const { return (height + 2 * border) * row(); }
  /// Returns the offset in memory of the first channel of pixel (y, x) [floats]. (0, 0) is the
  /// first pixel inside the border.
  std::int64_t at(int y, int x) const {
    return (y + border) * row() + static_cast<std::int64_t>(x + border) * stride;
  }
};

/// Loads one example of the data set, stored channel by channel, into an image with the channels of
/// a pixel next to each other. A stored byte becomes scale * byte + shift; a stored float stays
/// unchanged. Writes the pixels only, neither the border nor padding channels (those after the last
/// real channel of a pixel).
struct LoadImage {
  const std::uint8_t* bytes;  ///< pixels [channels, height, width]; null if floats
  const float* floats;
  float scale;
  float shift;
  float* out;
  ImageLayout layout;
};

// --- CUDA ---

namespace device {

/// Loads the examples of a micro-batch, and their labels, from the data set in device memory.
/// Examples become floats: a stored byte becomes scale * byte + shift, a stored float stays
/// unchanged, and a table row in compact form (CodedRows) becomes its dense row.
struct Load {
  Batch batch;
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on; null: 0, 1, ...
  const std::uint8_t* bytes;      ///< examples [data set, pixels], or null
  const float* floats;            ///< examples [data set, pixels], or null
  /// Examples in compact form (numeric features, and the indices of one-hot features that are 1);
  /// coded.rows is null for other data. Exactly one of bytes, floats and coded.rows is set.
  CodedRows coded;
  const std::uint8_t* labels;  ///< [data set], label of each example
  float scale;
  float shift;
  CountedPlanes planes;
  float* x;                          ///< [capacity, planes.size()], written: the examples
  std::uint8_t* x_label;             ///< [capacity], written: their labels
  Precision x_as = Precision::fp32;  ///< tf32: x is rounded to TF32
};

inline void validate(const Load& a) {
  validate(a.batch);
  const bool is_coded = a.coded.rows != nullptr;
  expect((a.bytes != nullptr) + (a.floats != nullptr) + is_coded == 1,
         "load: expected bytes, floats or codes");
  expect(!is_coded || a.coded.features == a.planes.pixels(), "load: expected codes of the planes");
  expect(a.labels != nullptr && a.x != nullptr && a.x_label != nullptr, "load: expected pointers");
}

inline LaunchShape launch_shape(const Load& a) { return pixel_shape(a.batch, a.planes.pixels()); }

}  // namespace device

}  // namespace cudp
