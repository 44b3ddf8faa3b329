#pragma once
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cudp::privacy::pld {

/// Discrete Fourier transforms of real sequences of one length, a power of two >= 4.
class Fft {
 public:
  explicit Fft(std::size_t length);
  ~Fft();
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  std::size_t length() const { return length_; }
  std::size_t frequencies() const { return length_ / 2 + 1; }

  /// spectrum[k] = sum over x of values[x] e^(-2 pi i k x / length), k = 0 .. length / 2.
  void forward(std::span<const double> values, std::span<std::complex<double>> spectrum) const;
  /// The inverse of `forward`, with its factor 1 / length. Overwrites the spectrum.
  void inverse(std::span<std::complex<double>> spectrum, std::span<double> values) const;

  /// Either transform's error is at most this times the exact result, both in Euclidean norm.
  ///
  /// Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", Theorem 24.2, for
  /// radix 4: a stage multiplies by twiddles, whose angle carries 16 units of 2^-53 (it is
  /// computed as j times a rounded increment) and whose product 3 more, and adds four terms.
  double relative_error() const;

 private:
  struct Plan;
  std::size_t length_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace cudp::privacy::pld
