#include "runtime/device/scatter_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <stdexcept>
#include <string>

namespace cudp {
namespace {

using std::numbers::pi;
using Complex = std::complex<double>;
using Field = std::vector<Complex>;  // complex image or spectrum, [rows, columns]

// Approximation of pi in the code of Kymatio. All filters are computed as in Kymatio, so that
// features can be compared with published results: Morlet wavelets at two scales and kScatterAngles
// angles, and a Gaussian low-pass filter.
constexpr double kKymatiosPi = 3.1415;
/// Ratio of the lengths of a wavelet's envelope along the wave and across it.
constexpr double kSlant = 4.0 / kScatterAngles;

std::size_t area(int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

/// Returns the n complex roots of unity exp(-2 pi i k / n), for k = 0..n-1.
std::vector<Complex> roots_of_unity(int n) {
  std::vector<Complex> roots;
  roots.reserve(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k) roots.push_back(std::polar(1.0, -2.0 * pi * k / n));
  return roots;
}

/// Computes, in place, the discrete Fourier transform of each of `lines` lines of `f`. Line l has n
/// numbers; number j is at index l * line_step + j * step. Uses the plain sum in double, O(n^2),
/// because tables are computed only once. Complex products are written out, because those of
/// std::complex check for NaN, which is slow. Computes kSide lines at a time.
void transform_lines(Field& f, int n, int step, int lines, int line_step) {
  constexpr int kSide = 8;
  const std::vector<Complex> roots = roots_of_unity(n);
  std::vector<double> re(area(n, kSide)), im(area(n, kSide));  // [n, kSide]
  for (int first = 0; first < lines; first += kSide) {
    const int side = std::min(kSide, lines - first);
    const auto at = [&](int j, int l) -> Complex& {
      return f[area(j, step) + area(first + l, line_step)];
    };
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < side; ++l) {
        re[area(j, kSide) + static_cast<std::size_t>(l)] = at(j, l).real();
        im[area(j, kSide) + static_cast<std::size_t>(l)] = at(j, l).imag();
      }
    for (int k = 0; k < n; ++k) {
      double sum_re[kSide] = {}, sum_im[kSide] = {};
      int jk = 0;  // modulo n
      for (int j = 0; j < n; ++j) {
        const double c = roots[static_cast<std::size_t>(jk)].real();
        const double s = roots[static_cast<std::size_t>(jk)].imag();
        const double* const a = re.data() + area(j, kSide);
        const double* const b = im.data() + area(j, kSide);
        for (int l = 0; l < kSide; ++l) {
          sum_re[l] += a[l] * c - b[l] * s;
          sum_im[l] += a[l] * s + b[l] * c;
        }
        jk += k;
        if (jk >= n) jk -= n;
      }
      for (int l = 0; l < side; ++l) at(k, l) = {sum_re[l], sum_im[l]};
    }
  }
}

/// Returns a Gabor filter as an image [rows, columns]: a Gaussian with elliptic level lines, times
/// the plane wave exp(i xi t), where t is a pixel's coordinate in the direction theta. sigma:
/// standard deviation of the Gaussian in that direction [pixels]. theta: angle of the direction
/// [radians]. xi: frequency of the wave [radians per pixel]. The filter is made periodic by adding
/// five periods in each direction; beyond them the Gaussian is 0 in double.
Field gabor(int rows, int columns, double sigma, double theta, double xi) {
  const double c = std::cos(theta);
  const double s = std::sin(theta);
  const double narrow = kSlant * kSlant;
  const double yy = (c * c + narrow * s * s) / (2.0 * sigma * sigma);
  const double xx = (s * s + narrow * c * c) / (2.0 * sigma * sigma);
  const double xy = 2.0 * (1.0 - narrow) * c * s / (2.0 * sigma * sigma);
  const double norm = 2.0 * kKymatiosPi * sigma * sigma / kSlant;
  Field f(area(rows, columns));
  for (int period_y = -2; period_y <= 2; ++period_y)
    for (int period_x = -2; period_x <= 2; ++period_x)
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
          const double y = i + period_y * rows;
          const double x = j + period_x * columns;
          const double exponent = -(yy * y * y + xy * y * x + xx * x * x);
          if (exponent < -750.0) continue;  // its exponential is 0 in double
          const double envelope = std::exp(exponent);
          f[area(i, columns) + static_cast<std::size_t>(j)] +=
              std::polar(envelope / norm, xi * (y * c + x * s));
        }
  return f;
}

/// Returns the Fourier transform of a Morlet wavelet as an image [rows, columns]. The wavelet is a
/// Gabor filter minus the multiple of its envelope that makes its sum zero, so that it maps a
/// constant image to 0. The transform is real because the filter is Hermitian. scale: 0 or 1; 1
/// doubles sigma and halves the frequency. angle: index of the direction, in [0, kScatterAngles).
std::vector<double> morlet(int rows, int columns, int scale, int angle) {
  const double sigma = 0.8 * (1 << scale);
  constexpr int kMiddle = kScatterAngles / 2 - 1;
  const double theta = (kMiddle - angle) * pi / kScatterAngles;
  const double xi = 0.75 * pi / (1 << scale);
  Field wave = gabor(rows, columns, sigma, theta, xi);
  const Field envelope = gabor(rows, columns, sigma, theta, 0.0);
  Complex wave_sum = 0.0;
  Complex envelope_sum = 0.0;
  for (std::size_t i = 0; i < wave.size(); ++i) {
    wave_sum += wave[i];
    envelope_sum += envelope[i];
  }
  for (std::size_t i = 0; i < wave.size(); ++i) wave[i] -= wave_sum / envelope_sum * envelope[i];
  transform_lines(wave, columns, 1, rows, columns);
  transform_lines(wave, rows, columns, columns, 1);
  std::vector<double> real;
  for (const Complex& z : wave) real.push_back(z.real());
  return real;
}

/// Returns the Fourier transform, n real numbers, of the low-pass filter along an axis of n pixels.
/// The filter of an image is the product of the filters along its two axes.
std::vector<double> low_pass_spectrum(int n) {
  const double sigma = 1.6;
  std::vector<double> g(static_cast<std::size_t>(n));
  for (int period = -2; period <= 2; ++period)
    for (int i = 0; i < n; ++i) {
      const double x = i + period * n;
      g[static_cast<std::size_t>(i)] +=
          std::exp(-x * x / (2.0 * sigma * sigma)) / (std::sqrt(2.0 * kKymatiosPi) * sigma);
    }
  std::vector<double> spectrum(g.size());
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      spectrum[static_cast<std::size_t>(k)] +=
          g[static_cast<std::size_t>(j)] * std::cos(2.0 * pi * j * k / n);
  return spectrum;
}

/// Returns ScatterTables::low_rows for one axis and level: the weights with which each output of
/// the low-pass filter adds up the pixels of a line, in blocks of kLowPassBlock outputs. Output o
/// is centred on pixel 4 (o + 1) of level 0. Pixel 0 and the last multiple of 4 have no output,
/// because they are in the padding. A line of level 1 has only every other pixel, so its filter has
/// only the lower half of the frequencies. n: number of pixels of the padded axis at level 0.
/// outputs: number of outputs.
std::vector<float> low_pass_table(int n, int level, int outputs) {
  const std::vector<double> full = low_pass_spectrum(n);
  const int size = n >> level;
  std::vector<double> filter(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    for (int k = 0; k < size; ++k) {
      const int high = k < (size + 1) / 2 ? k : k + n - size;
      const int frequency = level == 0 ? k : high;
      filter[static_cast<std::size_t>(i)] +=
          full[static_cast<std::size_t>(frequency)] * std::cos(2.0 * pi * i * k / size) / size;
    }
  const int blocks = low_pass_blocks(outputs);
  std::vector<float> table(area(blocks * size, kLowPassBlock));
  for (int o = 0; o < outputs; ++o)
    for (int j = 0; j < size; ++j) {
      const int centre = (o + 1) * (4 >> level);
      const int distance = ((centre - j) % size + size) % size;
      const std::size_t line = area(o / kLowPassBlock, size) + static_cast<std::size_t>(j);
      table[line * kLowPassBlock + static_cast<std::size_t>(o % kLowPassBlock)] =
          static_cast<float>(filter[static_cast<std::size_t>(distance)]);
    }
  return table;
}

/// Returns the length of an image axis of n pixels after Kymatio's padding for two scales: a
/// multiple of 4, with at least 2 more pixels on either side.
int padded(int n) { return ((n + 4) / 4 + 1) * 4; }

/// Returns, for each pixel of a padded axis, the index of the image pixel of which it is a copy:
/// padded(n) indices from 0 to n - 1. n: number of pixels of the axis before padding. Pixels of the
/// padding are reflections at the edge pixel, which is not repeated.
std::vector<std::int32_t> reflected(int n) {
  const int size = padded(n);
  const int before = (size - n) / 2;
  const int period = 2 * n - 2;
  std::vector<std::int32_t> from;
  for (int i = 0; i < size; ++i) {
    const int j = ((i - before) % period + period) % period;
    from.push_back(j < n ? j : period - j);
  }
  return from;
}

/// Returns a shortest list of radices from {8, 6, 5, 4, 3, 2} whose product is n. Returns an empty
/// list if there is none, or if n is 1.
std::vector<int> small_radices(int n) {
  std::vector<int> best;
  for (const int r : {8, 6, 5, 4, 3, 2}) {
    if (n % r != 0) continue;
    std::vector<int> rest = small_radices(n / r);
    if (rest.empty() && n != r) continue;
    rest.insert(rest.begin(), r);
    if (best.empty() || rest.size() < best.size()) best = std::move(rest);
  }
  return best;
}

/// Returns whether the kernel has unrolled code for this radix. Other radices use a table of roots.
bool has_butterfly(int radix) { return radix <= 6 || radix == 8; }

/// Returns the radices of the stages of a Fourier transform of n numbers; their product is n. First
/// come as few radices as possible for which the kernel has unrolled code, then the prime factors
/// of n from 7 on.
std::vector<int> radices(int n) {
  int rest = n;  // n without its factors 2, 3 and 5
  for (const int p : {2, 3, 5})
    while (rest % p == 0) rest /= p;
  std::vector<int> all = small_radices(n / rest);
  for (int p = 7; rest > 1; p += 2)
    for (; rest % p == 0; rest /= p) all.push_back(p);
  return all;
}

}  // namespace

FourierTables::FourierTables(int n) {
  const std::vector<int> stages = radices(n);
  if (stages.size() > kMaxFourierStages)
    throw std::invalid_argument("a Fourier transform of " + std::to_string(n) + " is too long");
  plan_.n = n;
  plan_.stages = static_cast<int>(stages.size());
  const auto add = [this](const Complex& z) {
    numbers_.push_back(static_cast<float>(z.real()));
    numbers_.push_back(static_cast<float>(z.imag()));
  };
  // Each stage's twiddle factors, in the order in which the kernel reads them; the last stage needs
  // none. They are followed by the roots of radices that are not unrolled.
  int left = n;
  for (const int r : stages) {
    const std::vector<Complex> roots = roots_of_unity(left);
    left /= r;
    if (left == 1) break;
    for (int p = 0; p < left; ++p)
      for (int k = 1; k < r; ++k) add(roots[area(p, k) % roots.size()]);
  }
  std::array<std::size_t, kMaxFourierStages> at{};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    plan_.radix[i] = stages[i];
    at[i] = numbers_.size();
    if (!has_butterfly(stages[i]))
      for (const Complex& z : roots_of_unity(stages[i])) add(z);
  }
  plan_.twiddles = numbers_.data();
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (!has_butterfly(stages[i])) plan_.roots[i] = numbers_.data() + at[i];
}

ScatterBank::ScatterBank(int height, int width) {
  if (height < 4 || width < 4)
    throw std::invalid_argument("scattering: expected images of at least 4 x 4 pixels, found " +
                                std::to_string(height) + " x " + std::to_string(width));
  ScatterTables& t = tables_;
  t.height = height;
  t.width = width;
  t.out_height = height / 4;
  t.out_width = width / 4;
  row_from_ = reflected(height);
  column_from_ = reflected(width);
  t.row_from = row_from_.data();
  t.column_from = column_from_.data();
  for (int level = 0; level < 2; ++level) {
    t.rows[level] = padded(height) >> level;
    t.columns[level] = padded(width) >> level;
    low_[level][0] = low_pass_table(t.rows[0], level, t.out_height);
    low_[level][1] = low_pass_table(t.columns[0], level, t.out_width);
    t.low_rows[level] = low_[level][0].data();
    t.low_columns[level] = low_[level][1].data();
    plans_.emplace_back(t.columns[level]);
    t.row_plan[level] = plans_.back().plan();
    plans_.emplace_back(t.rows[level]);
    t.column_plan[level] = plans_.back().plan();
  }
  const auto pixels = static_cast<double>(area(t.rows[0], t.columns[0]));
  for (int scale = 0; scale < 2; ++scale)
    for (int angle = 0; angle < kScatterAngles; ++angle)
      for (const double v : morlet(t.rows[0], t.columns[0], scale, angle))
        psi_.push_back(static_cast<float>(v / pixels));
  t.psi = psi_.data();
}

Shape scattered_shape(const Shape& image) {
  return {image.channels * kScatterChannels, image.height / 4, image.width / 4};
}

}  // namespace cudp
