#include "runtime/audit/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "privacy/rdp/binomial.hpp"

namespace cudp {

GradientScores::GradientScores(std::vector<std::uint32_t> parameters, double rate,
                               std::uint64_t rows)
    : parameters_(std::move(parameters)), scores_(parameters_.size()) {
  for (const double p : privacy::binomial_weights(rows, rate)) log_drawn_.push_back(std::log(p));
}

void GradientScores::add(const ReleasedSum& released) {
  const double sigma = released.noise_std / released.max_norm;
  std::vector<double> terms(log_drawn_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::uint32_t j = parameters_[i];
    const double x =
        (static_cast<double>(released.sum[j]) - static_cast<double>(released.ordinary[j])) /
        released.max_norm;
    double max_term = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < log_drawn_.size(); ++j) {
      const auto drawn = static_cast<double>(j);
      terms[j] = log_drawn_[j] + (drawn * x - 0.5 * drawn * drawn) / (sigma * sigma);
      max_term = std::fmax(max_term, terms[j]);
    }
    double sum = 0.0;
    for (const double term : terms) sum += std::exp(term - max_term);
    scores_[i] += max_term + std::log(sum);
  }
}

privacy::Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made) {
  std::ranges::sort(scores);
  const std::uint64_t half = made / 2;
  privacy::Guesses g{.canaries = scores.size(), .made = 2 * half, .correct = 0};
  for (std::uint64_t i = 0; i < half; ++i) {
    g.correct += scores[i].second ? 0 : 1;
    g.correct += scores[scores.size() - 1 - i].second ? 1 : 0;
  }
  return g;
}

}  // namespace cudp
