#include "privacy/pld/composition.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace cudp::privacy::pld {
namespace {

using Complex = std::complex<double>;
constexpr double unit = 0.5 * std::numeric_limits<double>::epsilon();

/// A step's tilted probabilities, moved so that the largest is at 0, where its transform is known
/// without a transform: the others' Euclidean norm is what rounding is relative to.
struct Tilted {
  std::vector<LatticeDot> dots;  ///< without the largest
  double largest = 0.0;
  std::int64_t place = 0;  ///< of the largest
  double log_scale = 0.0;  ///< K
  double norm = 0.0;       ///< of the dots, as they fall onto the transform's places
};

Tilted tilt_lattice(const Lattice& lattice, double tilt, double interval) {
  double top = -std::numeric_limits<double>::infinity();
  std::vector<double> logs;
  logs.reserve(lattice.dots.size());
  for (const LatticeDot& dot : lattice.dots) {
    logs.push_back(std::log(dot.mass) + tilt * static_cast<double>(dot.index) * interval);
    top = std::fmax(top, logs.back());
  }
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - top);
  Tilted result{.dots = {}, .largest = 0.0, .place = 0, .log_scale = top + std::log(sum)};
  std::size_t largest = 0;
  for (std::size_t i = 0; i < logs.size(); ++i)
    if (logs[i] > logs[largest]) largest = i;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const double weight = std::exp(logs[i] - result.log_scale);
    if (i == largest) {
      result.largest = weight;
      result.place = lattice.dots[i].index;
    } else if (weight > 0.0) {
      result.dots.push_back({lattice.dots[i].index - lattice.dots[largest].index, weight});
    }
  }
  return result;
}

std::size_t wrapped(std::int64_t index, std::size_t length) {
  return static_cast<std::size_t>(index) & (length - 1);  // length is a power of two
}

/// values^count, by squaring, a block at a time.
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
    // Powers below 1e-200 of a sum that is near 1 are nothing, and slow where they are denormal.
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
          // Keep out of the denormal numbers.
          const bool small = std::fabs(re[i]) + std::fabs(im[i]) < 1e-150;
          re[i] = small ? 0.0 : re[i];
          im[i] = small ? 0.0 : im[i];
        }
    }
    for (std::size_t i = 0; i < n; ++i)
      values[begin + i] = nothing ? Complex(0.0, 0.0) : Complex(out_re[i], out_im[i]);
  }
}

/// std::abs guards against overflow, which costs more than all else here.
double size(const Complex& value) { return std::sqrt(std::norm(value)); }

/// The product of all steps' transforms, with a bound of each frequency's error.
struct Spectrum {
  std::vector<Complex> value;
  std::vector<double> error;
};

/// Multiplies `result` by the count-th power of a step's transform f, known to e by frequency:
/// |(f + d)^n - f^n| <= n e (|f| + e)^(n-1), and each product adds sqrt(5) roundings (Brent,
/// Percival, Zimmermann 2007).
void multiply(Spectrum& result, std::vector<Complex>& factor, double e, std::uint64_t count,
              bool first) {
  const auto n = static_cast<double>(count);
  const double rounding = 2.5 * unit * n, growth = std::exp(std::fmin(4.0 * e * n, 700.0));
  std::vector<double>& error = result.error;
  std::vector<double> magnitude(factor.size());
  for (std::size_t k = 0; k < factor.size(); ++k) magnitude[k] = size(factor[k]);
  raise(factor, count);
  for (std::size_t k = 0; k < factor.size(); ++k) {
    const double m = magnitude[k], power = size(factor[k]);
    // (m + e)^(n-1): by growth where m is at least 1/4; below, n m^(n-1) is at most 1 itself.
    double through = e;
    if (count > 1)
      through =
          m >= 0.25 ? n * e * growth * power / m : n * e * std::fmin(power / m + 2.0 * e, 1.0);
    if (m == 0.0 && count > 1) through = n * e * std::fmin(2.0 * e, 1.0);
    const double own = through + rounding * power + 1e-140;
    if (first) {
      result.value[k] = factor[k];
      error[k] = own;
      continue;
    }
    const Complex a = result.value[k], b = factor[k];
    error[k] = error[k] * (power + own) + size(a) * own + 2.5 * unit * size(a) * power;
    result.value[k] = {a.real() * b.real() - a.imag() * b.imag(),
                       a.real() * b.imag() + a.imag() * b.real()};
  }
}

}  // namespace

Composition::Composition(std::span<const Repeated> steps, double tilt, const Window& window,
                         const Fft& fft, StepError error, bool above)
    : tilt_(tilt), interval_(window.interval), first_(window.first), above_(above) {
  const std::size_t length = window.length;
  Spectrum total{.value = std::vector<Complex>(fft.frequencies()),
                 .error = std::vector<double>(fft.frequencies())};
  std::int64_t offset = 0;
  double count = 0.0, infinite = 0.0, magnitude = 0.0;
  std::vector<double> values(length);
  bool first = true;
  for (const Repeated& step : steps) {
    const auto n = static_cast<double>(step.count);
    Tilted tilted = tilt_lattice(step.lattice, tilt, window.interval);
    std::fill(values.begin(), values.end(), 0.0);
    double largest_exponent = 0.0;
    for (const LatticeDot& dot : tilted.dots) values[wrapped(dot.index, length)] += dot.mass;
    for (const LatticeDot& dot : step.lattice.dots)
      if (dot.mass > 1e-60)
        largest_exponent = std::fmax(largest_exponent,
                                     std::fabs(tilt * static_cast<double>(dot.index) * interval_));
    double norm = 0.0;
    for (const double value : values) norm += value * value;
    norm = std::sqrt(norm);
    std::vector<Complex> spectrum(fft.frequencies());
    fft.forward(values, spectrum);
    for (Complex& value : spectrum) value += tilted.largest;
    const double by_frequency =
        fft.relative_error() * norm * std::sqrt(static_cast<double>(length)) + 4.0 * unit;
    multiply(total, spectrum, by_frequency, step.count, first);
    first = false;
    offset += static_cast<std::int64_t>(step.count) * tilted.place;
    log_scale_ += n * tilted.log_scale;
    magnitude += n * std::fabs(tilted.log_scale);
    infinite += n * step.lattice.infinite;
    count += n;
    // The tilted weights' own rounding, which is relative.
    by_sum_ += n * 8.0 * unit * (largest_exponent + std::fabs(tilted.log_scale) + 50.0);
  }
  by_sum_ += count * error.tail * 2.72 * (2.0 + tilt);
  by_sum_ = std::expm1(std::fmin(by_sum_, 100.0)) + std::expm1(4.0 * unit * magnitude);
  shift_ = count * error.loss;

  for (std::size_t k = 0; k < total.error.size(); ++k)
    by_place_ += (k == 0 || 2 * k == length ? 1.0 : 2.0) * total.error[k];
  by_place_ /= static_cast<double>(length);
  fft.inverse(total.value, values);
  double norm = 0.0;
  for (const double value : values) norm += value * value;
  by_place_ += 1.01 * fft.relative_error() * std::sqrt(norm);

  std::vector<double> in_window(length);
  for (std::size_t i = 0; i < length; ++i)
    in_window[i] = values[wrapped(first_ + static_cast<std::int64_t>(i) - offset, length)];
  sum_tails(in_window);
  if (above) {
    added_ = infinite * (1.0 + 1e-12) + window.mass_above;
  } else {
    added_ = -std::expm1(infinite) * (1.0 + 1e-12);
    by_sum_ += window.tilted_outside;
  }
}

void Composition::sum_tails(std::span<const double> tilted) {
  // The reference is the middle; below it weights grow, and are kept as long as they fit.
  const std::size_t length = tilted.size();
  reference_ = static_cast<double>(first_ + static_cast<std::int64_t>(length / 2)) * interval_;
  const double reach = 600.0 / ((tilt_ + 1.0) * interval_);
  const auto half = static_cast<double>(length / 2);
  begin_ = reach >= half ? 0 : length / 2 - static_cast<std::size_t>(reach);
  sum_.assign(length - begin_ + 1, 0.0);
  sum_e_.assign(length - begin_ + 1, 0.0);
  constexpr std::size_t block = 64;
  double a[block], b[block];
  for (std::size_t j = 0; j < block; ++j) {
    a[j] = std::exp(-tilt_ * static_cast<double>(j) * interval_);
    b[j] = std::exp(-(tilt_ + 1.0) * static_cast<double>(j) * interval_);
  }
  double sum = 0.0, sum_e = 0.0;
  for (std::size_t end = length; end > begin_;) {
    const std::size_t begin = std::max(begin_, (end - 1) / block * block);
    const double x = (static_cast<double>(begin) - half) * interval_;
    const double start = std::exp(-tilt_ * x), start_e = std::exp(-(tilt_ + 1.0) * x);
    for (std::size_t i = end; i-- > begin;) {
      const double t = tilted[i];
      sum += t * (start * a[i - begin]);
      sum_e += t * (start_e * b[i - begin]);
      sum_[i - begin_] = sum;
      sum_e_[i - begin_] = sum_e;
    }
    end = begin;
  }
  // log_scale_ is now that of one unit at the reference.
  log_scale_ -= tilt_ * reference_;
}

double Composition::delta(double epsilon) const {
  const double from = above_ ? epsilon - shift_ : epsilon + shift_;
  // Everything relative to the reference.
  const double e = from - reference_;
  const std::size_t middle = (sum_.size() - 1 + begin_) / 2;
  const double place = e / interval_ + static_cast<double>(middle - begin_);
  // Places strictly above epsilon; the one at it has weight 0.
  const double next = std::floor(place) + 1.0;
  const auto last = static_cast<double>(sum_.size() - 1);
  if (next < 0.0) return above_ ? 1.0 : 0.0;  // outside of what was kept: say nothing
  const auto i = static_cast<std::size_t>(std::fmin(next, last));
  const double tail = sum_[i], moved = std::exp(e) * sum_e_[i];
  // Rounding of the two sums, whose difference this is.
  const double rounding =
      4.0 * unit * (64.0 + std::fmin(last, 1e9)) * (std::fabs(tail) + std::fabs(moved));
  // The largest weight e^(-tilt x) (1 - e^(e - x)) of one place, and the sum of all weights.
  const double untilted = std::exp(-tilt_ * e);
  const double peak =
      tilt_ > 0.0 ? std::exp(tilt_ * std::log(tilt_ / (1.0 + tilt_))) / (1.0 + tilt_) : 1.0;
  const double places = std::fmax(last - static_cast<double>(i), 0.0);
  const double weights = std::fmin(places, 1.0 + 1.0 / (tilt_ * interval_ + 1e-300));
  const double error = rounding + untilted * (peak * by_sum_ + weights * by_place_);
  const double scale = std::exp(log_scale_);
  const double value = tail - moved;
  if (getenv("DBG"))
    fprintf(stderr,
            "eps %g above %d value %g rounding %g sum %g (by_sum %g) place %g (by_place %g) added "
            "%g scale %g tilt %g shift %g\n",
            epsilon, above_, value * scale, rounding * scale, untilted * peak * by_sum_ * scale,
            by_sum_, untilted * weights * by_place_ * scale, by_place_, added_, scale, tilt_,
            shift_);
  if (above_) return (value + error) * scale * (1.0 + 1e-12) + added_;
  return (value - error) * scale * (1.0 - 1e-12) + added_;
}

}  // namespace cudp::privacy::pld
