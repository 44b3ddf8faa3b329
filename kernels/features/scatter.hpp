#pragma once
// Scattering transform of images with J = 2 scales and L = 8 angles, to order 2 (Bruna & Mallat
// 2013; Oyallon & Mallat 2015), with Kymatio's wavelets, padding and order of channels. With phi a
// low-pass filter and psi_a, psi_b wavelets, the channels of an image x are
//   x * phi;  |x * psi_a| * phi;  ||x * psi_a| * psi_b| * phi,
// each subsampled to every fourth pixel. There are 1 + 16 + 64 = 81 channels with a quarter of the
// image's height and width, rounded down.
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/features/fourier.hpp"

namespace cudp {

/// Number of orientations of the wavelets.
inline constexpr int kScatterAngles = 8;
/// Number of output channels per plane of the scattering transform: 81.
inline constexpr int kScatterChannels = 1 + 2 * kScatterAngles + kScatterAngles * kScatterAngles;

/// Number of outputs in a row or column of an image that the low-pass filter computes at once.
inline constexpr int kLowPassBlock = 8;

/// Tables for the scattering transform (fixed wavelet features) of images of one size. The
/// transform works on two resolutions: level 0 is the padded image, level 1 has every other row and
/// column of it. runtime/device/scatter_tables.hpp makes the tables.
struct ScatterTables {
  int height = 0;  ///< height of an image [pixels]
  int width = 0;
  int out_height = 0;  ///< height of a channel: height / 4
  int out_width = 0;
  int rows[2] = {};     ///< rows of each level after padding; rows[0] is a multiple of 4
  int columns[2] = {};  ///< columns of each level, after padding
  /// Index of the image row that each row of the padded image is a copy of, [rows[0]]. Rows beyond
  /// the image's edges are reflected.
  const std::int32_t* row_from = nullptr;
  /// Index of the image column that each column of the padded image is a copy of, [columns[0]].
  const std::int32_t* column_from = nullptr;
  /// Fourier transforms of the wavelets, [2 scales][8 angles][rows[0], columns[0]]. The numbers of
  /// these transforms are real. They are divided by rows[0] columns[0], so that an inverse
  /// transform need not divide.
  const float* psi = nullptr;
  /// Matrices that apply the low-pass filter phi along the columns of an image (low_rows) or along
  /// its rows (low_columns), and keep every fourth output only; one matrix per level. Outputs are
  /// in groups of 8: [groups of 8 outputs][inputs: rows or columns of the level][8]. Weights of
  /// outputs past the last are zero.
  const float* low_rows[2] = {};
  const float* low_columns[2] = {};
  FourierPlan row_plan[2];     ///< Fourier transform of a row: columns[level] numbers
  FourierPlan column_plan[2];  ///< Fourier transform of a column: rows[level] numbers

  int out_pixels() const { return out_height * out_width; }
};

inline int low_pass_blocks(int outputs) { return (outputs + kLowPassBlock - 1) / kLowPassBlock; }

/// Scattering transform on the CPU of a few planes at once. A plane is one colour channel of one
/// image.
struct Scatter {
  const ScatterTables* tables;
  const std::uint8_t* bytes;  ///< pixels [planes, height, width], or null
  const float* floats;        ///< [planes, height, width], or null; exactly one of the two is set
  float scale;                ///< factor for bytes: pixel = scale * byte + shift
  float shift;
  int planes;  ///< 1 to CpuKernels::lanes
  float* out;  ///< written: features [planes, 81, out_height, out_width]
  /// Working memory: scatter_work(tables) * CpuKernels::lanes floats, aligned to 64 bytes.
  float* work;
};

/// Returns the size of the working memory of one transform, in one SIMD lane [floats].
inline std::size_t scatter_work(const ScatterTables& t) {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  const std::size_t rows = size(t.rows[0]);
  const std::size_t columns = size(t.columns[0]);
  const std::size_t longest = rows > columns ? rows : columns;
  const std::size_t low_rows = size(low_pass_blocks(t.out_height)) * kLowPassBlock;
  const std::size_t low_columns = size(low_pass_blocks(t.out_width)) * kLowPassBlock;
  const std::size_t complex_numbers = 3 * (rows * (columns + 1) + longest);  // images and lines
  const std::size_t real_numbers =  // an image, a line, and the low-pass filter's outputs
      rows * columns + longest + low_rows * columns + size(t.out_height) * low_columns;
  return 2 * complex_numbers + real_numbers;
}

// --- CUDA ---
//
// Kernels of the scattering transform on CUDA. They use the tables above. Between the kernels,
// cuFFT computes the Fourier transforms. A plane is one colour channel of one image.

/// Complex number in the memory layout of cuFFT.
struct ComplexFloat {
  float re;
  float im;
};

/// Converts planes of pixels (one colour channel of one image each) to complex images that are
/// padded by reflection at their edges.
struct ScatterLoad {
  const std::uint8_t* bytes;  ///< pixels [planes, height, width], or null
  const float* floats;        ///< [planes, height, width], or null; exactly one of the two is set
  float scale;                ///< factor for bytes: pixel = scale * byte + shift
  float shift;
  int planes;
  int height;
  int width;
  int rows;
  int columns;
  const std::int32_t* row_from;  ///< [rows], image row that each padded row is copied from
  /// Index of the image column that each column of the padded image is copied from, [columns].
  const std::int32_t* column_from;
  ComplexFloat* out;  ///< written: padded images [planes, rows, columns]
};

/// Multiplies the Fourier transform of each image by those of 8 wavelets, which filters the image.
/// If level is 1, also adds up the four quarters of each product: this halves the image's rows and
/// columns (every other pixel is kept).
struct ScatterFilter {
  /// Fourier transforms of the images, [images, rows << level, columns << level]. At level 1 they
  /// have twice as many rows and columns as the output.
  const ComplexFloat* spectra;
  int images;
  const float* psi;  ///< wavelets' Fourier transforms [8, rows << level, columns << level]
  int level;         ///< 0, or 1 to subsample
  int rows;          ///< number of rows of the output
  int columns;
  ComplexFloat* out;  ///< written: products [images, 8, rows, columns]
};

/// Replaces each complex number z by its modulus |z|.
struct ScatterModulus {
  ComplexFloat* z;  ///< [count] complex numbers, replaced
  std::int64_t count;
};

/// Applies the low-pass filter to the real parts of images, along the columns and then along the
/// rows, and keeps every fourth pixel in both directions.
struct ScatterLowPass {
  const ComplexFloat* images;  ///< [planes, channels, rows, columns], to be filtered
  int planes;
  int channels;
  int rows;
  int columns;
  int out_height;
  int out_width;
  const float* row_table;     ///< ScatterTables::low_rows of the images' level
  const float* column_table;  ///< ScatterTables::low_columns of the images' level
  int first_channel;
  float* out;  ///< [planes, 81, out_height, out_width]; writes `channels` of the 81
};

inline void validate(const ScatterLoad& a) {
  expect((a.bytes != nullptr) != (a.floats != nullptr), "scatter: expected bytes or floats");
  expect(a.out != nullptr && a.row_from != nullptr && a.column_from != nullptr,
         "scatter: expected pointers");
  expect(a.planes > 0 && a.height > 0 && a.width > 0 && a.rows >= a.height && a.columns >= a.width,
         "scatter: expected sizes > 0 and padded sizes at least as large");
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
         "scatter: expected sizes > 0 and channels among the 81");
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
