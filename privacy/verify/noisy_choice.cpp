#include "privacy/verify/noisy_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace cudp::verify {
namespace {

std::uint64_t first_digits(const std::vector<std::uint32_t>& words, std::size_t i) {
  return std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
}

/// Returns ln(-ln U) for the uniform number U = m 2^-64, 0 < m < 2^64. It is the negative of a
/// Gumbel random number.
long double log_of_exponential(std::uint64_t m) {
  if (m < std::uint64_t{1} << 63)
    return std::log(-std::log(static_cast<long double>(m) * 0x1p-64L));
  const std::uint64_t rest = std::uint64_t{0} - m;  // 2^64 - m, exact
  return std::log(-std::log1p(-(static_cast<long double>(rest) * 0x1p-64L)));
}

struct Noisy {
  long double low;
  long double high;
};

}  // namespace

std::optional<std::vector<std::size_t>> gumbel_choices(const RandomWords& words,
                                                       std::span<const double> scores,
                                                       double epsilon, double sensitivity,
                                                       std::size_t count) {
  const std::vector<std::uint32_t> digits = words.first(2 * scores.size());
  const double lowest = scores.empty() ? 0.0 : *std::ranges::min_element(scores);
  std::vector<Noisy> noisy;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::uint64_t m = first_digits(digits, i);
    if (m == 0 || m == ~std::uint64_t{0}) {
      noisy.push_back({-HUGE_VALL, HUGE_VALL});
      continue;
    }
    const long double product = static_cast<long double>(epsilon) / sensitivity *
                                (static_cast<long double>(scores[i]) - lowest);
    // U is between m 2^-64 and (m + 1) 2^-64. `error` also covers that the trainer rounds epsilon /
    // sensitivity to double.
    const long double high = log_of_exponential(m);
    const long double low = log_of_exponential(m + 1);
    const long double error = 0x1p-50L * (1.0L + std::fabs(high) + product);
    noisy.push_back({low + product - error, high + product + error});
  }
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return noisy[i].low; });
  for (std::size_t k = 0; k < count && k + 1 < order.size(); ++k)
    if (!(noisy[order[k]].high < noisy[order[k + 1]].low)) return std::nullopt;
  order.resize(std::min(count, order.size()));
  return order;
}

std::optional<std::size_t> laplace_choice(const RandomWords& words, std::span<const double> scores,
                                          double epsilon, double sensitivity) {
  const std::vector<std::uint32_t> digits = words.first(2 * scores.size());
  std::size_t best = 0;
  long double largest = -HUGE_VALL;
  long double second = -HUGE_VALL;
  long double size = 0.0L;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const long double u =
        (static_cast<long double>(first_digits(digits, i) >> 12) + 0.5L) * 0x1p-52L;
    const long double laplace = u < 0.5L ? std::log(2.0L * u) : -std::log(2.0L * (1.0L - u));
    const long double noise = static_cast<long double>(sensitivity) / epsilon * laplace;
    const long double value = noise - static_cast<long double>(scores[i]);
    size = std::fmax(size, std::fabs(noise) + std::fabs(static_cast<long double>(scores[i])));
    if (value > largest) {
      second = largest;
      largest = value;
      best = i;
    } else {
      second = std::fmax(second, value);
    }
  }
  if (!(largest - second > 0x1p-45L * size)) return std::nullopt;
  return best;
}

}  // namespace cudp::verify
