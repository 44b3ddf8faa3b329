#include "privacy/pld/lattice_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace cudp::privacy::pld {
namespace {

using Complex = std::complex<double>;
constexpr double unit = 0.5 * std::numeric_limits<double>::epsilon();

/// Probabilities of one release's losses after exponential tilting. The largest probability is
/// stored apart, and the indices of the others are relative to its index. The Fourier transform of
/// the largest probability alone is then a constant without rounding errors. So the error of the
/// whole transform is relative to the Euclidean norm of the other probabilities.
struct Tilted {
  std::vector<LatticeAtom> atoms;  ///< all atoms except the largest
  double largest = 0.0;
  std::int64_t index = 0;  ///< index of the atom with the largest probability
  /// K, the log of the sum of mass e^(tilt loss) over all losses; a tilted probability is mass
  /// e^(tilt loss - K)
  double log_scale = 0.0;
  /// Relative error of the tail probabilities, averaged over the tilted atoms.
  double tail_error = 0.0;
};

Tilted tilt_lattice(const Lattice& lattice, double tilt, double interval) {
  double top = -std::numeric_limits<double>::infinity();
  std::vector<double> logs;
  logs.reserve(lattice.atoms.size());
  for (const LatticeAtom& atom : lattice.atoms) {
    logs.push_back(std::log(atom.mass) + tilt * static_cast<double>(atom.index) * interval);
    top = std::fmax(top, logs.back());
  }
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - top);
  Tilted result{.atoms = {}, .largest = 0.0, .index = 0, .log_scale = top + std::log(sum)};
  std::size_t largest = 0;
  for (std::size_t i = 0; i < logs.size(); ++i)
    if (logs[i] > logs[largest]) largest = i;
  double above = 0.0;
  for (std::size_t i = logs.size(); i-- > 0;) {
    const double weight = std::exp(logs[i] - result.log_scale);
    // erfc(z) of a rounded z has an error of 2 z^2 roundings, and z^2 is below -log of the tail.
    above += lattice.atoms[i].mass;
    result.tail_error += weight * unit * (32.0 - 8.0 * std::log(std::fmin(above, 1.0)));
    if (i == largest) {
      result.largest = weight;
      result.index = lattice.atoms[i].index;
    } else if (weight > 0.0) {
      result.atoms.push_back({lattice.atoms[i].index - lattice.atoms[largest].index, weight});
    }
  }
  return result;
}

std::size_t wrapped(std::int64_t index, std::size_t length) {
  return static_cast<std::size_t>(index) & (length - 1);  // length is a power of two
}

/// Raises each value to the power `count`, by repeated squaring. Works on blocks of values that fit
/// into vector registers.
void raise(std::span<Complex> values, std::uint64_t count) {
  constexpr std::size_t block = 32;
  double re[block], im[block], out_re[block], out_im[block];
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t n = std::min(block, values.size() - begin);
    double largest = 0.0;
    for (std::size_t i = 0; i < block; ++i) {
      re[i] = i < n ? values[begin + i].real() : 0.0;
      im[i] = i < n ? values[begin + i].imag() : 0.0;
      out_re[i] = 1.0;
      out_im[i] = 0.0;
      largest = std::fmax(largest, re[i] * re[i] + im[i] * im[i]);
    }
    // Powers below 1e-200 are negligible in a sum that is near 1, and slow if they are denormal.
    const bool nothing = static_cast<double>(count) * std::log(largest) < -920.0;
    for (std::uint64_t left = nothing ? 0 : count; left > 0; left >>= 1) {
      if ((left & 1) != 0)
        for (std::size_t i = 0; i < block; ++i) {
          const double product = out_re[i] * re[i] - out_im[i] * im[i];
          out_im[i] = out_re[i] * im[i] + out_im[i] * re[i];
          out_re[i] = product;
        }
      if (left > 1)
        for (std::size_t i = 0; i < block; ++i) {
          const double square = re[i] * re[i] - im[i] * im[i];
          im[i] = 2.0 * re[i] * im[i];
          re[i] = square;
          // Avoid denormal numbers.
          const bool small = std::fabs(re[i]) + std::fabs(im[i]) < 1e-150;
          re[i] = small ? 0.0 : re[i];
          im[i] = small ? 0.0 : im[i];
        }
    }
    for (std::size_t i = 0; i < n; ++i)
      values[begin + i] = nothing ? Complex(0.0, 0.0) : Complex(out_re[i], out_im[i]);
  }
}

/// Returns |value|. Unlike std::abs it does not guard against overflow, because the guard would
/// take most of the computation's time.
double size(const Complex& value) { return std::sqrt(std::norm(value)); }

/// F, the product of all releases' transforms f^n, with a bound on the error at each frequency.
///
/// The error d of a transform f is known in Euclidean norm only. At frequencies with |f| >= 1/4 it
/// changes the product by n d f^(n-1) times the other factors, which is at most n d F / |f|. The
/// sum of these errors over all such frequencies is at most `through`, the sum of n |d| over the
/// releases, times the Euclidean norm of F / min_modulus, with `min_modulus` the smallest |f| at a
/// frequency (Cauchy-Schwarz). At each other frequency d may be as large as its whole norm; that
/// error is in `error`.
struct Spectrum {
  explicit Spectrum(std::size_t frequencies)
      : error(frequencies, 0.0), min_modulus(frequencies, 1.0) {}
  std::vector<Complex> value;  ///< empty until multiply() is called
  std::vector<double> error, min_modulus;
  double through = 0.0;
};

/// Multiplies `result` by f^n. f: `factor`, a release's transform, whose error d is at most e at
/// each frequency. n: `count`. The error of f^n is at most n |d| (|f| + e)^(n-1), and each complex
/// product adds sqrt(5) roundings (Brent, Percival, Zimmermann 2007).
void multiply(Spectrum& result, std::vector<Complex> factor, double e, std::uint64_t count) {
  const bool first = result.value.empty();
  const auto n = static_cast<double>(count);
  const double rounding = 2.5 * unit * n;
  result.through += n * e * std::exp(std::fmin(4.0 * e * n, 700.0));
  std::vector<double> magnitude(factor.size());
  for (std::size_t k = 0; k < factor.size(); ++k) magnitude[k] = size(factor[k]);
  raise(factor, count);
  for (std::size_t k = 0; k < factor.size(); ++k) {
    const double m = magnitude[k], power = size(factor[k]);
    double own = rounding * power + 1e-140;
    result.min_modulus[k] = std::max(std::min(result.min_modulus[k], m), 0.25);
    if (m < 0.25) {  // (m + e)^(n-1) is at most m^(n-1) + 2 e
      const double through = count == 1 ? 1.0 : (m > 0.0 ? power / m : 0.0) + 2.0 * e;
      own += n * e * std::fmin(through, 1.0);
    }
    double& error = result.error[k];
    if (first) {
      error = own;
      continue;
    }
    const Complex a = result.value[k], b = factor[k];
    error = error * (power + own) + size(a) * own + 2.5 * unit * size(a) * power;
    result.value[k] = {a.real() * b.real() - a.imag() * b.imag(),
                       a.real() * b.imag() + a.imag() * b.real()};
  }
  if (first) result.value = std::move(factor);
}

}  // namespace

LatticeSum::LatticeSum(std::span<const Repeated> releases, double tilt, const Window& window,
                       const Fft& fft, double loss_error, bool above)
    : tilt_(tilt), interval_(window.interval), first_(window.first), above_(above) {
  const std::size_t length = window.length;
  if (releases.size() == 1 && releases.front().count == 1) {
    add_single_release(releases.front().lattice, length, loss_error);
    return;
  }
  Spectrum total(fft.frequencies());
  std::int64_t offset = 0;
  double count = 0.0, infinite = 0.0, magnitude = 0.0;
  std::vector<double> values(length);
  for (const Repeated& release : releases) {
    const auto n = static_cast<double>(release.count);
    Tilted tilted = tilt_lattice(release.lattice, tilt, window.interval);
    std::fill(values.begin(), values.end(), 0.0);
    double largest_exponent = 0.0;
    for (const LatticeAtom& atom : tilted.atoms) values[wrapped(atom.index, length)] += atom.mass;
    for (const LatticeAtom& atom : release.lattice.atoms)
      if (atom.mass > 1e-60)
        largest_exponent = std::fmax(largest_exponent,
                                     std::fabs(tilt * static_cast<double>(atom.index) * interval_));
    double norm = 0.0;
    for (const double value : values) norm += value * value;
    norm = std::sqrt(norm);
    std::vector<Complex> spectrum(fft.frequencies());
    fft.forward(values, spectrum);
    for (Complex& value : spectrum) value += tilted.largest;
    const double by_frequency =
        fft.relative_error() * norm * std::sqrt(static_cast<double>(length)) + 4.0 * unit;
    multiply(total, std::move(spectrum), by_frequency, release.count);
    offset += static_cast<std::int64_t>(release.count) * tilted.index;
    offset_ += n * release.lattice.offset;
    log_scale_ += n * tilted.log_scale;
    magnitude += n * std::fabs(tilted.log_scale);
    infinite += n * release.lattice.infinite;
    count += n;
    by_sum_ += n * tilted.tail_error * 2.72 * (2.0 + tilt);
    // Relative rounding error of the tilted weights.
    by_sum_ += n * 8.0 * unit * (largest_exponent + std::fabs(tilted.log_scale) + 50.0);
  }
  by_sum_ = std::expm1(std::fmin(by_sum_, 100.0)) + std::expm1(4.0 * unit * magnitude);
  shift_ = count * loss_error;

  double product = 0.0;
  for (std::size_t k = 0; k < total.error.size(); ++k) {
    const double twice = k == 0 || 2 * k == length ? 1.0 : 2.0;
    by_point_ += twice * total.error[k];
    const double passed = (size(total.value[k]) + total.error[k]) / total.min_modulus[k];
    product += twice * passed * passed;
  }
  by_point_ += total.through * std::sqrt(product);
  by_point_ /= static_cast<double>(length);
  fft.inverse(total.value, values);
  double norm = 0.0;
  for (const double value : values) norm += value * value;
  by_point_ += 1.01 * fft.relative_error() * std::sqrt(norm);

  sum_tails(length, [&](std::size_t i) {
    return values[wrapped(first_ + static_cast<std::int64_t>(i) - offset, length)];
  });
  if (above) {
    added_ = infinite * (1.0 + 1e-12) + window.mass_above;
  } else {
    added_ = -std::expm1(infinite) * (1.0 + 1e-12);
    by_sum_ += window.tilted_outside;
  }
}

/// Evaluates a composition of a single release, without a transform. Nothing wraps around, and the
/// probability outside of the window is exact.
void LatticeSum::add_single_release(const Lattice& lattice, std::size_t length, double loss_error) {
  const Tilted tilted = tilt_lattice(lattice, tilt_, interval_);
  offset_ = lattice.offset;
  log_scale_ = tilted.log_scale;
  shift_ = loss_error;
  by_sum_ = tilted.tail_error * 2.72 * (2.0 + tilt_);
  added_ = above_ ? lattice.infinite : -lattice.infinite;
  std::vector<double> in_window(length, 0.0);
  const auto last = first_ + static_cast<std::int64_t>(length);
  for (const LatticeAtom& atom : lattice.atoms) {
    const double exponent = tilt_ * static_cast<double>(atom.index) * interval_ - log_scale_;
    if (atom.index >= last && above_) added_ += atom.mass;
    if (atom.index < first_ || atom.index >= last) continue;
    const double weight = std::exp(std::log(atom.mass) + exponent);
    in_window[static_cast<std::size_t>(atom.index - first_)] = weight;
    by_sum_ += weight * 8.0 * unit * (std::fabs(exponent) + std::fabs(log_scale_) + 50.0);
  }
  sum_tails(length, [&](std::size_t i) { return in_window[i]; });
}

/// Computes `sum_` and `sum_moved_` of a window of this length. tilted(i): returns the tilted
/// probability at its point i. Value: type of the function tilted().
template <class Value>
void LatticeSum::sum_tails(std::size_t length, const Value& tilted) {
  sum_.assign(length + 1, 0.0);
  sum_moved_.assign(length + 1, 0.0);
  const double fall = std::exp(-tilt_ * interval_),
               fall_moved = std::exp(-(tilt_ + 1.0) * interval_);
  for (std::size_t i = length; i-- > 0;) {
    const double here = tilted(i);
    sum_[i] = here + fall * sum_[i + 1];
    sum_moved_[i] = here + fall_moved * sum_moved_[i + 1];
  }
}

double LatticeSum::delta(double epsilon) const {
  const double from = epsilon - offset_ + (above_ ? -shift_ : shift_);
  // Index in the window of the first point above epsilon. A point at epsilon itself has weight 0.
  const double point = std::floor(from / interval_) + 1.0 - static_cast<double>(first_);
  if (point < 0.0) return above_ ? 1.0 : 0.0;  // there is no bound below the window
  const auto last = static_cast<double>(sum_.size() - 1);
  const auto i = static_cast<std::size_t>(std::fmin(point, last));
  const double x = (static_cast<double>(first_) + static_cast<double>(i)) * interval_;
  const double before = std::fmin(from - x, 0.0);
  const double tail = sum_[i], moved = std::exp(before) * sum_moved_[i];
  // Undoing the tilt gives a point y the weight e^(-tilt (y - x)) (1 - e^(from - y)). at_from *
  // peak: largest weight. weights: bound on the sum of all weights. rounding: bound on the rounding
  // errors of `tail` and `moved`, which sum_tails() computed with up to `points` products and
  // additions.
  const double at_from = std::exp(-tilt_ * before);
  const double peak =
      tilt_ > 0.0 ? std::exp(tilt_ * std::log(tilt_ / (1.0 + tilt_))) / (1.0 + tilt_) : 1.0;
  const double points = last - static_cast<double>(i);
  const double weights = std::fmin(points, 1.0 + 1.0 / (tilt_ * interval_ + 1e-300));
  const double rounding = 8.0 * unit * (8.0 + points) * (std::fabs(tail) + std::fabs(moved));
  const double error = rounding + at_from * peak * by_sum_ + weights * by_point_;
  const double scale = std::exp(std::fmin(log_scale_ - tilt_ * x, 700.0));
  const double value = tail - moved;
  if (above_) return (value + error) * scale * (1.0 + 1e-12) + added_;
  return (value - error) * scale * (1.0 - 1e-12) + added_;
}

}  // namespace cudp::privacy::pld
