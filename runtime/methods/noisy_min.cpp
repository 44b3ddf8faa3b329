#include "runtime/methods/noisy_min.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include "runtime/base/random_numbers.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {
namespace {

namespace mp = boost::multiprecision;

std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}

/// Returns a double from 52 random bits, in (0, 1), with a distribution symmetric about 1/2.
double uniform(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>(join(high, low) >> 12) + 0.5) * 0x1p-52;
}

double laplace(double u) { return u < 0.5 ? std::log(2.0 * u) : -std::log(2.0 * (1.0 - u)); }

/// An interval known to contain a real number.
template <class Real>
struct Interval {
  Real low;
  Real high;
};

/// Returns the indices of the `count` smallest of several numbers, in ascending order of the
/// numbers. Of each number only an interval that contains it is known; returns nullopt if
/// overlapping intervals leave the order open.
template <class Real>
std::optional<std::vector<std::size_t>> order_of(const std::vector<Interval<Real>>& all,
                                                 std::size_t count) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return all[i].low; });
  count = std::min(count, all.size());
  // The intervals are sorted by their lower ends. So if interval k ends below the next one, it ends
  // below all later ones.
  for (std::size_t k = 0; k < count && k + 1 < order.size(); ++k)
    if (!(all[order[k]].high < all[order[k + 1]].low)) return std::nullopt;
  order.resize(count);
  return order;
}

double min_of(std::span<const double> scores) {
  return scores.empty() ? 0.0 : *std::ranges::min_element(scores);
}

}  // namespace

/// Error analysis of quick_noisy_order(), which computes in double. Let E = -ln U, with uniform U
/// in (0, 1), and let m be the first 64 bits of U, so that U is in [m, m + 1] 2^-64, and 2^44 <= m
/// <= 2^64 - 2^44. Later bits change U by at most 2^-44 of its value. They change E by at most
/// 2^-44 if U < 1/2, where E > ln 2; and by at most 2^-63 if U >= 1/2, where E > 2^-20. In both
/// cases that is below 2^-42 of E. Rounding m or 2^64 - m to double, and log or log1p (a few units
/// in the last place), change E by 2^-49 of its value. The outer log is rounded by 2^-49 of |ln E|,
/// and the product rate * score by 2^-50 of its value. The sum of these errors is below 2^-40 (1 +
/// |ln E| + product).
std::optional<std::vector<std::size_t>> quick_noisy_order(std::span<const double> scores,
                                                          std::size_t count, double rate,
                                                          std::span<const std::uint32_t> digits) {
  constexpr double kOpen = std::numeric_limits<double>::infinity();
  const double min_score = min_of(scores);
  std::vector<Interval<double>> all;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::uint64_t m = join(digits[2 * i], digits[2 * i + 1]);
    constexpr std::uint64_t kEdge = std::uint64_t{1} << 44;
    if (m < kEdge || std::uint64_t{0} - m < kEdge) {
      all.push_back({-kOpen, kOpen});
      continue;
    }
    const double e = m < std::uint64_t{1} << 63
                         ? -std::log(static_cast<double>(m) * 0x1p-64)
                         : -std::log1p(-(static_cast<double>(std::uint64_t{0} - m) * 0x1p-64));
    const double log_e = std::log(e);
    const double product = rate * (scores[i] - min_score);
    const double error = 0x1p-40 * (1.0 + std::fabs(log_e) + product);
    all.push_back({log_e + product - error, log_e + product + error});
  }
  return order_of(all, count);
}

std::vector<std::size_t> exact_noisy_order(std::span<const double> scores, std::size_t count,
                                           double rate, std::span<const std::uint32_t> digits) {
  using Real = mp::number<mp::cpp_bin_float<1024, mp::digit_base_2>, mp::et_off>;
  constexpr int kBits = 32 * kAllDigits;
  const Real min_score = min_of(scores);
  const Real open = std::numeric_limits<Real>::infinity();
  std::vector<Interval<Real>> all;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    mp::cpp_int m = 0;
    for (std::size_t word = 0; word < kAllDigits; ++word)
      m = (m << 32) | digits[i * kAllDigits + word];
    const mp::cpp_int one = mp::cpp_int(1) << kBits;
    if (m == 0 || m + 1 == one) {
      all.push_back({-open, open});
      continue;
    }
    // E is at least 2^-832, and log is exact but for the last few of 1024 bits, so the relative
    // error of E is at most 2^-180.
    const auto log_e = [](const mp::cpp_int& u) { return Real(log(-log(ldexp(Real(u), -kBits)))); };
    const Real product = Real(rate) * (Real(scores[i]) - min_score);
    const Real low = log_e(m + 1) + product;
    const Real high = log_e(m) + product;
    const Real error = ldexp(1 + abs(low) + abs(high), -150);
    all.push_back({low - error, high + error});
  }
  auto order = order_of(all, count);
  if (!order) throw std::runtime_error("noisy minimum: 832 random bits do not decide it");
  return *std::move(order);
}

namespace {

void show_choice(std::span<const double> scores, std::span<std::size_t> chosen, double sensitivity,
                 const RandomStream& stream, ReleaseObserver* release_observer) {
  const ReleasedValue what{.name = "choice by noisy scores",
                           .purpose = stream.stream,
                           .step = stream.step,
                           .sensitivity = sensitivity};
  if (SecretObserver* const o = observer(release_observer)) o->before_noise(what, scores);
  show_released(release_observer, what, chosen);
}

/// Returns the indices of the `count` smallest noisy scores, in ascending order of the noisy
/// scores. Reads more digits of the noise from the random stream only if the first ones leave the
/// order open.
std::vector<std::size_t> noisy_order(std::span<const double> scores, std::size_t count, double rate,
                                     const RandomStream& stream) {
  const std::size_t k = scores.size();
  if (auto order = quick_noisy_order(scores, count, rate, random_words(stream, kFirstDigits * k)))
    return *std::move(order);
  const std::vector<std::uint32_t> words = random_words(stream, kAllDigits * k);
  constexpr std::size_t kMore = kAllDigits - kFirstDigits;
  std::vector<std::uint32_t> digits;
  for (std::size_t i = 0; i < k; ++i) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(kFirstDigits * i);
    const auto more = words.begin() + static_cast<std::ptrdiff_t>(kFirstDigits * k + kMore * i);
    digits.insert(digits.end(), first, first + kFirstDigits);
    digits.insert(digits.end(), more, more + kMore);
  }
  return exact_noisy_order(scores, count, rate, digits);
}

}  // namespace

std::vector<std::size_t> noisy_smallest(std::span<const double> scores, std::size_t count,
                                        double sensitivity, double epsilon,
                                        const RandomStream& stream,
                                        ReleaseObserver* release_observer) {
  const double rate = std::nextafter(epsilon / sensitivity, 0.0);
  std::vector<std::size_t> chosen = noisy_order(scores, count, rate, stream);
  show_choice(scores, chosen, sensitivity, stream, release_observer);
  return chosen;
}

std::size_t noisy_min(std::span<const double> scores, double sensitivity, double epsilon,
                      SelectionNoise noise, const RandomStream& stream,
                      ReleaseObserver* release_observer) {
  if (noise == SelectionNoise::gumbel)
    return noisy_smallest(scores, 1, sensitivity, epsilon, stream, release_observer).front();
  const std::vector<std::uint32_t> words = random_words(stream, 2 * scores.size());
  const double scale = sensitivity / epsilon;
  std::size_t best = 0;
  double largest = 0.0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double noisy = -scores[i] + scale * laplace(uniform(words[2 * i], words[2 * i + 1]));
    if (i > 0 && !(noisy > largest)) continue;
    best = i;
    largest = noisy;
  }
  show_choice(scores, std::span(&best, 1), sensitivity, stream, release_observer);
  return best;
}

privacy::Mechanism noisy_min_mechanism(double epsilon, SelectionNoise noise) {
  if (noise == SelectionNoise::gumbel) return privacy::BoundedRange{epsilon};
  return privacy::ApproximateDp{.epsilon = epsilon, .delta = 0.0};
}

double noisy_min_epsilon(double rho, SelectionNoise noise) {
  return std::sqrt((noise == SelectionNoise::gumbel ? 8.0 : 2.0) * rho);
}

}  // namespace cudp
