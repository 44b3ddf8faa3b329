#pragma once
// The steps of the scattering transform on CUDA, between Fourier transforms that the device's
// library does; see scatter.hpp for the tables. "planes" are images of one colour.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/features/scatter.hpp"

namespace cudp {

/// As cuFFT has it.
struct ComplexFloat {
  float re;
  float im;
};

/// Pixels to complex images with reflected borders.
struct ScatterLoad {
  const std::uint8_t* bytes;  ///< [planes, height, width], or null
  const float* floats;        ///< likewise; one of the two
  float scale;                ///< of bytes
  float shift;
  int planes;
  int height;
  int width;
  int rows;
  int columns;
  const std::int32_t* row_from;     ///< [rows]
  const std::int32_t* column_from;  ///< [columns]
  ComplexFloat* out;                ///< [planes, rows, columns]
};

/// Spectra times 8 wavelets, and of every 2^level-th pixel: quarters of a product are added up.
struct ScatterFilter {
  const ComplexFloat* spectra;  ///< [images, rows << level, columns << level]
  int images;
  const float* psi;  ///< [8, rows << level, columns << level]
  int level;         ///< 0 or 1
  int rows;          ///< of what comes out
  int columns;
  ComplexFloat* out;  ///< [images, 8, rows, columns]
};

/// z <- |z|.
struct ScatterModulus {
  ComplexFloat* z;  ///< [count]
  std::int64_t count;
};

/// The low-pass filter, its axes one after the other, from the real parts of images.
struct ScatterLowPass {
  const ComplexFloat* images;  ///< [planes, channels, rows, columns]
  int planes;
  int channels;
  int rows;
  int columns;
  int out_height;
  int out_width;
  const float* row_table;     ///< as ScatterTables::low_rows
  const float* column_table;  ///< as ScatterTables::low_columns
  int first_channel;
  float* out;  ///< [planes, 81, out_height, out_width]; these channels are written
};

inline void validate(const ScatterLoad& a) {
  expect((a.bytes != nullptr) != (a.floats != nullptr), "scatter: expected bytes or floats");
  expect(a.out != nullptr && a.row_from != nullptr && a.column_from != nullptr,
         "scatter: expected pointers");
  expect(a.planes > 0 && a.height > 0 && a.width > 0 && a.rows >= a.height && a.columns >= a.width,
         "scatter: expected sizes > 0, padded ones no smaller");
}
inline void validate(const ScatterFilter& a) {
  expect(a.spectra != nullptr && a.psi != nullptr && a.out != nullptr,
         "scatter: expected pointers");
  expect(a.images > 0 && a.rows > 0 && a.columns > 0 && (a.level == 0 || a.level == 1),
         "scatter: expected sizes > 0 and level 0 or 1");
}
inline void validate(const ScatterModulus& a) {
  expect(a.z != nullptr && a.count > 0, "scatter: expected numbers");
}
inline void validate(const ScatterLowPass& a) {
  expect(a.images != nullptr && a.row_table != nullptr && a.column_table != nullptr &&
             a.out != nullptr,
         "scatter: expected pointers");
  expect(a.planes > 0 && a.channels > 0 && a.rows > 0 && a.columns > 0 && a.out_height > 0 &&
             a.out_width > 0 && a.first_channel >= 0 &&
             a.first_channel + a.channels <= kScatterChannels,
         "scatter: expected sizes > 0 and channels of the 81");
}

inline LaunchShape launch_shape(const ScatterLoad& a) {
  return strided_shape(std::int64_t{a.planes} * a.rows * a.columns);
}
inline LaunchShape launch_shape(const ScatterFilter& a) {
  return strided_shape(std::int64_t{a.images} * kScatterAngles * a.rows * a.columns);
}
inline LaunchShape launch_shape(const ScatterModulus& a) { return strided_shape(a.count); }
inline LaunchShape launch_shape(const ScatterLowPass& a) {
  const auto floats = static_cast<std::size_t>(a.out_height) * static_cast<std::size_t>(a.columns);
  return {.grid = {static_cast<unsigned>(a.planes) * static_cast<unsigned>(a.channels)},
          .block = {128},
          .shared_bytes = floats * sizeof(float)};
}

}  // namespace cudp
