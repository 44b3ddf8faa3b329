#pragma once
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cudp::privacy::pld {

/// Discrete Fourier transforms of real sequences of a fixed length, a power of two >= 4.
class Fft {
 public:
  explicit Fft(std::size_t length);
  ~Fft();
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  std::size_t length() const { return length_; }
  std::size_t frequencies() const { return length_ / 2 + 1; }

  /// Computes spectrum[k] = sum over x of values[x] e^(-2 pi i k x / length), k = 0 .. length / 2.
  /// `values` has `length` numbers, `spectrum` length / 2 + 1.
  void forward(std::span<const double> values, std::span<std::complex<double>> spectrum) const;
  /// Computes the inverse of forward(), including the factor 1 / length, from `spectrum` into
  /// `values`. Overwrites `spectrum`.
  void inverse(std::span<std::complex<double>> spectrum, std::span<double> values) const;

  /// Bound on the relative error of either transform: error / exact result, both in Euclidean norm.
  ///
  /// Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", Theorem 24.2, for radix
  /// 4. A stage multiplies by twiddle factors and adds four terms. The angle of a twiddle factor
  /// has an error of 16 units of 2^-53, because it is a multiple of a rounded increment. The
  /// multiplication adds 3 such units.
  double relative_error() const;

 private:
  struct Plan;
  std::size_t length_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace cudp::privacy::pld
