// The distribution of the normal numbers. Every bound below fails a right generator with
// probability 1e-6 at most; the seeds are fixed, so it either always passes or never.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/random_key.hpp"
#include "tests/support/distributions.hpp"

namespace cudp {
namespace {

constexpr double kFalseAlarm = 1e-6;

// Largest |x| of a standard normal number at that rate.
double sigmas() { return law::normal_quantile_above(kFalseAlarm / 2); }

double phi(double x) { return law::normal_below(x); }

std::vector<float> normals(const RandomStream& s, std::int64_t n) {
  std::vector<float> z(static_cast<std::size_t>(n));
  cpu_kernels(best_simd_level()).fill_normals(s, 0, n, z.data());
  return z;
}

// Sums of products x_i y_(i + lag) and of their squares less 1, in units of their deviations: both
// are standard normal numbers if x and y are independent.
struct Correlation {
  double plain;
  double squares;
};
Correlation correlate(const std::vector<float>& x, const std::vector<float>& y, std::size_t lag) {
  double plain = 0;
  double squares = 0;
  const std::size_t n = x.size() - lag;
  for (std::size_t i = 0; i < n; ++i) {
    const double a = x[i];
    const double b = y[i + lag];
    plain += a * b;
    squares += (a * a - 1) * (b * b - 1);
  }
  const double root = std::sqrt(static_cast<double>(n));
  return {plain / root, squares / (2 * root)};
}

void expect_independent(const std::vector<float>& x, const std::vector<float>& y, std::size_t lag,
                        const std::string& what) {
  const Correlation c = correlate(x, y, lag);
  EXPECT_TRUE(std::fabs(c.plain) <= sigmas()) << what << ", lag " << lag << ": " << c.plain;
  EXPECT_TRUE(std::fabs(c.squares) <= sigmas())
      << what << " squared, lag " << lag << ": " << c.squares;
}

class Normals : public testing::TestWithParam<Generator> {
 protected:
  static RandomStream stream(Stream purpose = Stream::noise, std::uint64_t step = 1,
                             std::uint64_t seed = 42) {
    return {GetParam(), key_from_seed(seed), purpose, step};
  }
  static const std::vector<float>& sample() {
    static std::array<std::vector<float>, 2> kept;
    auto& z = kept[GetParam() == Generator::philox];
    if (z.empty()) z = normals(stream(), 1 << 24);
    return z;
  }
};

TEST_P(Normals, Moments) {
  const auto& z = sample();
  double m[5] = {};
  for (const double x : z) {
    const double x2 = x * x;
    m[1] += x;
    m[2] += x2;
    m[3] += x2 * x;
    m[4] += x2 * x2;
  }
  const double n = static_cast<double>(z.size());
  const double bound = sigmas() / std::sqrt(n);
  // deviations of the sums of z, z^2, z^3, z^4: the root of E z^2k - (E z^k)^2
  EXPECT_TRUE(std::fabs(m[1] / n) <= bound) << m[1] / n;
  EXPECT_TRUE(std::fabs(m[2] / n - 1) <= bound * std::sqrt(2.0)) << m[2] / n;
  EXPECT_TRUE(std::fabs(m[3] / n) <= bound * std::sqrt(15.0)) << m[3] / n;
  EXPECT_TRUE(std::fabs(m[4] / n - 3) <= bound * std::sqrt(96.0)) << m[4] / n;
}

TEST_P(Normals, Distribution) {
  const auto& z = sample();
  constexpr int kBins = 4096;  // of 1/256 over [-8, 8)
  std::vector<double> count(kBins);
  for (const float x : z) {
    ASSERT_TRUE(std::fabs(x) < 7.6f);
    ++count[static_cast<int>(std::floor(x * 256)) + kBins / 2];
  }
  const double n = static_cast<double>(z.size());
  double below = 0;
  double distance = 0;  // Kolmogorov-Smirnov, at the edges of the bins: no more than the true one
  double chi_square = 0;
  int cells = 0;
  double seen = 0;
  double expected = 0;  // cells are joined until 20 numbers are expected
  for (int bin = 0; bin < kBins; ++bin) {
    const double left = bin / 256.0 - 8;
    const double right = left + 1 / 256.0;
    below += count[bin];
    distance = std::max(distance, std::fabs(below / n - phi(right)));
    seen += count[bin];
    expected += n * (left < 0 ? phi(right) - phi(left) : phi(-left) - phi(-right));
    if (expected >= 20) {
      chi_square += (seen - expected) * (seen - expected) / expected;
      ++cells;
      seen = expected = 0;
    }
  }
  EXPECT_LE(distance, std::sqrt(std::log(2 / kFalseAlarm) / (2 * n)));  // Massart's bound
  EXPECT_LE(chi_square, law::chi_squared_quantile_above(cells - 1, kFalseAlarm));
  EXPECT_GE(chi_square, law::chi_squared_quantile(cells - 1, kFalseAlarm)) << "too even";
}

TEST_P(Normals, Tails) {
  const auto& z = sample();
  for (const double edge : {3.0, 4.0, 5.0}) {
    const auto beyond = static_cast<double>(
        std::count_if(z.begin(), z.end(), [&](double x) { return std::fabs(x) > edge; }));
    const auto n = static_cast<double>(z.size());
    const double p = 2 * phi(-edge);
    EXPECT_GE(law::binomial_at_most(n, p, beyond), kFalseAlarm / 2) << beyond << " beyond " << edge;
    EXPECT_GE(law::binomial_above(n, p, beyond - 1), kFalseAlarm / 2)
        << beyond << " beyond " << edge;
  }
}

// Lag 16 couples the two numbers of a Box-Muller pair, 1 and 256 neighbouring generator blocks.
TEST_P(Normals, Autocorrelation) {
  for (const std::size_t lag : {1, 2, 15, 16, 17, 32, 128, 255, 256, 257, 512, 4096})
    expect_independent(sample(), sample(), lag, "a stream with itself");
}

TEST_P(Normals, StreamsAreIndependent) {
  constexpr std::int64_t kLength = 1 << 20;
  const auto z = normals(stream(), kLength);
  for (const std::size_t lag : {0, 1, 16, 256}) {
    expect_independent(z, normals(stream(Stream::sampling), kLength), lag, "another stream");
    expect_independent(z, normals(stream(Stream::noise, 2), kLength), lag, "the next step");
    expect_independent(z, normals(stream(Stream::noise, 1, 43), kLength), lag, "the next seed");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Normals, testing::Values(Generator::chacha20, Generator::philox),
                         [](const auto& i) {
                           return i.param == Generator::chacha20 ? "chacha20" : "philox";
                         });

}  // namespace
}  // namespace cudp
