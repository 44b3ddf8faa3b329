#pragma once
// The scattering transform as a sequence of kernels and Fourier transforms.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/features/scatter.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/scatter.hpp"
#include "runtime/device/scatter_tables.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Computes scattering features of images of one size on a CUDA device. A plane is one channel of
/// one image. Planes are processed in groups of at most `capacity`, which is chosen automatically
/// if it is 0.
class DeviceScatter {
 public:
  DeviceScatter(Gpu& gpu, int height, int width, int capacity = 0);

  /// Returns the scattering features (fixed wavelet features) of the images, [number of images,
  /// size of scattered_shape(shape)]. The images must have the size that this object was made for.
  std::vector<float> operator()(const Dataset& images, const WorkDone& done);

 private:
  static std::size_t count(int n) { return static_cast<std::size_t>(n); }
  std::size_t pixels(int level) const { return count(t_.rows[level]) * count(t_.columns[level]); }
  std::size_t features() const { return count(kScatterChannels) * count(t_.out_pixels()); }

  Buffer<float> table(const float* numbers, int n, int outputs);

  void transform(int planes, const Dataset& images);

  using Images = Buffer<ComplexFloat>;

  void fourier(const Images& images, int n, int level, bool inverse);

  /// Convolves n images with the 8 wavelets of scale 2^level and writes the absolute values, at
  /// every 2^level-th pixel in both directions, to `to` [n, 8]. spectra: Fourier transforms of the
  /// images.
  void modulus_of_wavelets(const Images& spectra, int n, int level, const Images& to);

  void low_pass(const Images& images, int planes, int channels, int level, int first_channel);

  Gpu& gpu_;
  ScatterBank bank_;
  const ScatterTables& t_;
  int capacity_;
  Buffer<std::int32_t> row_from_;
  Buffer<std::int32_t> column_from_;
  Buffer<float> psi_;
  Buffer<float> low_rows_[2];
  Buffer<float> low_columns_[2];
  Buffer<std::uint8_t> bytes_;
  Buffer<float> floats_;
  Images images_;  ///< [planes, rows, columns], images, then their Fourier transforms
  Images first_;   ///< [planes, 8, rows, columns], first order
  Images second_;  ///< [planes, 8, 8, rows / 2, columns / 2], second order
  Buffer<float> out_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
