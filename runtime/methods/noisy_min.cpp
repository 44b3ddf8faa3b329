#include "runtime/methods/noisy_min.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/random_numbers.hpp"

namespace cudp {
namespace {

/// From 52 random bits, in (0, 1) and symmetric about 1/2.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

double gumbel(double u) { return -std::log(-std::log(u)); }
double laplace(double u) { return u < 0.5 ? std::log(2.0 * u) : -std::log(2.0 * (1.0 - u)); }

}  // namespace

std::vector<std::size_t> noisy_least(std::span<const double> scores, std::size_t count,
                                     double sensitivity, double epsilon,
                                     const RandomStream& stream) {
  const std::vector<std::uint32_t> words = random_words(stream, 2 * scores.size());
  std::vector<std::pair<double, std::size_t>> noisy;
  for (std::size_t i = 0; i < scores.size(); ++i)
    noisy.emplace_back(
        scores[i] - sensitivity / epsilon * gumbel(uniform(words[2 * i], words[2 * i + 1])), i);
  std::ranges::sort(noisy);
  std::vector<std::size_t> least;
  for (std::size_t i = 0; i < std::min(count, noisy.size()); ++i) least.push_back(noisy[i].second);
  return least;
}

std::size_t noisy_min(std::span<const double> scores, double sensitivity, double epsilon,
                      SelectionNoise noise, const RandomStream& stream) {
  const std::vector<std::uint32_t> words = random_words(stream, 2 * scores.size());
  const double scale = sensitivity / epsilon;
  std::size_t best = 0;
  double largest = 0.0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double u = uniform(words[2 * i], words[2 * i + 1]);
    const double noisy =
        -scores[i] + scale * (noise == SelectionNoise::gumbel ? gumbel(u) : laplace(u));
    if (i > 0 && !(noisy > largest)) continue;
    best = i;
    largest = noisy;
  }
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
