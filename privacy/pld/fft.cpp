#include "privacy/pld/fft.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include <kissfft/kissfft.hh>

namespace cudp::privacy::pld {

using Complex = std::complex<double>;

struct Fft::Plan {
  explicit Plan(std::size_t length)
      : half(length / 2, false), scratch(length / 2), twiddles(length / 4 + 1) {
    for (std::size_t k = 0; k < twiddles.size(); ++k) {
      const double angle =
          2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      twiddles[k] = {std::cos(angle), std::sin(angle)};
    }
  }
  kissfft<double> half;
  std::vector<Complex> scratch, twiddles;
};

Fft::Fft(std::size_t length) : length_(length) {
  if (length < 4 || (length & (length - 1)) != 0)
    throw std::invalid_argument("fft: expected a power of two >= 4, found " +
                                std::to_string(length));
  plan_ = std::make_unique<Plan>(length);
}

Fft::~Fft() = default;

void Fft::forward(std::span<const double> values, std::span<Complex> spectrum) const {
  const std::size_t n = length_ / 2;
  std::vector<Complex>& packed = plan_->scratch;
  for (std::size_t i = 0; i < n; ++i) packed[i] = {values[2 * i], values[2 * i + 1]};
  plan_->half.transform(packed.data(), spectrum.data());
  // `spectrum` is now Z = E + i O, where E and O are the transforms of the values at even and odd
  // indices. E is the Hermitian part of Z (`even`), i O the anti-Hermitian one (`d`).
  const Complex z0 = spectrum[0];
  spectrum[0] = z0.real() + z0.imag();
  spectrum[n] = z0.real() - z0.imag();
  for (std::size_t k = 1; 2 * k <= n; ++k) {
    const Complex a = spectrum[k], b = std::conj(spectrum[n - k]);
    const Complex even = 0.5 * (a + b), d = 0.5 * (a - b);
    const Complex w = plan_->twiddles[k];  // e^(+2 pi i k / length)
    // -i conj(w) d
    const double re = w.real() * d.real() + w.imag() * d.imag();
    const double im = w.real() * d.imag() - w.imag() * d.real();
    const Complex odd(im, -re);
    spectrum[k] = even + odd;
    spectrum[n - k] = std::conj(even - odd);
  }
}

void Fft::inverse(std::span<Complex> spectrum, std::span<double> values) const {
  const std::size_t n = length_ / 2;
  const double first = spectrum[0].real(), last = spectrum[n].real();
  // The steps of forward() in reverse order. The conjugates turn the inverse transform of half the
  // length into a forward one.
  spectrum[0] = std::conj(Complex(first + last, first - last));
  for (std::size_t k = 1; 2 * k <= n; ++k) {
    const Complex a = spectrum[k], b = std::conj(spectrum[n - k]);
    const Complex even = a + b, d = a - b;
    const Complex w = plan_->twiddles[k];
    // i w d
    const double re = w.real() * d.real() - w.imag() * d.imag();
    const double im = w.real() * d.imag() + w.imag() * d.real();
    const Complex odd(-im, re);
    spectrum[k] = std::conj(even + odd);
    spectrum[n - k] = even - odd;  // conj(conj(.))
  }
  std::vector<Complex>& packed = plan_->scratch;
  plan_->half.transform(spectrum.data(), packed.data());
  const double scale = 1.0 / static_cast<double>(length_);
  for (std::size_t i = 0; i < n; ++i) {
    values[2 * i] = packed[i].real() * scale;
    values[2 * i + 1] = -packed[i].imag() * scale;
  }
}

double Fft::relative_error() const {
  const double stages = 0.5 * std::log2(static_cast<double>(length_)) + 2.5;
  return 12.0 * std::numeric_limits<double>::epsilon() * stages;
}

}  // namespace cudp::privacy::pld
