#pragma once
// Reference implementation of the scattering transform, by its definition in double: convolutions
// are sums over pixels, without a fast Fourier transform or shared code.
#include <cmath>
#include <complex>
#include <cstddef>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

class ReferenceScatter {
 public:
  ReferenceScatter(int height, int width)
      : height_(height), width_(width), rows_(padded(height)), columns_(padded(width)) {
    for (int j = 0; j < 2; ++j)
      for (int l = 0; l < 8; ++l) psi_.push_back(morlet(j, l));
    low_full_ = gabor(1.6, 0.0, 0.0, 1.0);
    low_half_ = low_frequencies(low_full_);
  }

  /// Returns the features [colours, 81, height / 4, width / 4] of image number `n`.
  std::vector<double> operator()(const Dataset& d, int n) const {
    std::vector<double> out;
    for (int c = 0; c < d.shape.channels; ++c) add(pad(d, n * d.shape.channels + c), out);
    return out;
  }

 private:
  using Image = std::vector<double>;
  using Filter = std::vector<std::complex<double>>;

  static int padded(int n) { return 4 * ((n + 4) / 4 + 1); }
  static int wrap(int i, int n) { return ((i % n) + n) % n; }
  static std::size_t at(int y, int x, int columns) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(x);
  }

  Image pad(const Dataset& d, int plane) const {
    const auto mirrored = [](int i, int n) {
      while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
      return i;
    };
    Image out(at(rows_, 0, columns_));
    for (int y = 0; y < rows_; ++y)
      for (int x = 0; x < columns_; ++x) {
        const std::size_t from = at(mirrored(y - (rows_ - height_) / 2, height_),
                                    mirrored(x - (columns_ - width_) / 2, width_), width_) +
                                 static_cast<std::size_t>(plane) * at(height_, 0, width_);
        out[at(y, x, columns_)] = d.is_bytes() ? d.bytes[from] / 255.0 : double{d.floats[from]};
      }
    return out;
  }

  /// Returns a Gabor filter. Its exponent is in coordinates along and across the wave.
  Filter gabor(double sigma, double theta, double xi, double slant) const {
    Filter f(at(rows_, 0, columns_));
    for (int y = -2 * rows_; y < 3 * rows_; ++y)
      for (int x = -2 * columns_; x < 3 * columns_; ++x) {
        const double along = y * std::cos(theta) + x * std::sin(theta);
        const double across = x * std::cos(theta) - y * std::sin(theta);
        const double e = (along * along + slant * slant * across * across) / (2.0 * sigma * sigma);
        f[at(wrap(y, rows_), wrap(x, columns_), columns_)] +=
            std::exp(std::complex<double>(-e, xi * along)) * slant / (6.283 * sigma * sigma);
      }
    return f;
  }

  Filter morlet(int j, int l) const {
    const double sigma = j == 0 ? 0.8 : 1.6;
    const double xi = j == 0 ? 2.356194490192345 : 1.1780972450961724;
    const double theta = (3 - l) * 0.39269908169872414;
    Filter wave = gabor(sigma, theta, xi, 0.5);
    const Filter envelope = gabor(sigma, theta, 0.0, 0.5);
    std::complex<double> sums[2];
    for (std::size_t i = 0; i < wave.size(); ++i) {
      sums[0] += wave[i];
      sums[1] += envelope[i];
    }
    for (std::size_t i = 0; i < wave.size(); ++i) wave[i] -= sums[0] / sums[1] * envelope[i];
    return wave;
  }

  /// Returns every other pixel of the filter without its upper frequencies, scaled for the coarser
  /// grid. Each frequency below a quarter is a sum over pixels of both axes.
  Filter low_frequencies(const Filter& f) const {
    const int rows = rows_ / 2;
    const int columns = columns_ / 2;
    const auto frequency = [](int k, int n) { return k < n / 2 ? k : k - n; };
    const double turn = 6.283185307179586;
    Filter out(at(rows, 0, columns));
    for (int ky = 0; ky < rows; ++ky)
      for (int kx = 0; kx < columns; ++kx) {
        std::complex<double> weight = 0.0;
        for (int y = 0; y < rows_; ++y)
          for (int x = 0; x < columns_; ++x)
            weight += f[at(y, x, columns_)] *
                      std::polar(1.0, -turn * (double(frequency(ky, rows) * y) / rows_ +
                                               double(frequency(kx, columns) * x) / columns_));
        for (int y = 0; y < rows; ++y)
          for (int x = 0; x < columns; ++x)
            out[at(y, x, columns)] +=
                weight * std::polar(1.0 / (rows * columns),
                                    turn * (double(ky * y) / rows + double(kx * x) / columns));
      }
    return out;
  }

  /// Returns (u * f) at pixel (y, x) of a grid with these sizes.
  static std::complex<double> convolve(const Image& u, const Filter& f, int rows, int columns,
                                       int y, int x) {
    std::complex<double> sum = 0.0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        sum += u[at(i, j, columns)] * f[at(wrap(y - i, rows), wrap(x - j, columns), columns)];
    return sum;
  }

  /// Returns |u * psi| at every step-th pixel.
  Image modulus(const Image& u, const Filter& psi, int step) const {
    Image out;
    for (int y = 0; y < rows_; y += step)
      for (int x = 0; x < columns_; x += step)
        out.push_back(std::abs(convolve(u, psi, rows_, columns_, y, x)));
    return out;
  }

  void add_low_pass(const Image& u, bool half, std::vector<double>& out) const {
    const int step = half ? 2 : 4;
    for (int y = 1; y <= height_ / 4; ++y)
      for (int x = 1; x <= width_ / 4; ++x)
        out.push_back(convolve(u, half ? low_half_ : low_full_, half ? rows_ / 2 : rows_,
                               half ? columns_ / 2 : columns_, step * y, step * x)
                          .real());
  }

  void add(const Image& u, std::vector<double>& out) const {
    add_low_pass(u, false, out);
    std::vector<Image> fine;
    for (std::size_t l = 0; l < 8; ++l) {
      fine.push_back(modulus(u, psi_[l], 1));
      add_low_pass(fine.back(), false, out);
    }
    for (std::size_t l = 0; l < 8; ++l) add_low_pass(modulus(u, psi_[8 + l], 2), true, out);
    for (const Image& v : fine)
      for (std::size_t l = 0; l < 8; ++l) add_low_pass(modulus(v, psi_[8 + l], 2), true, out);
  }

  int height_, width_;
  int rows_, columns_;
  std::vector<Filter> psi_;
  Filter low_full_, low_half_;
};

}  // namespace cudp
