#include "runtime/audit/scores.hpp"

#include <algorithm>
#include <cmath>

namespace cudp {

GradientScores::GradientScores(std::vector<std::uint32_t> parameters, double rate)
    : parameters_(std::move(parameters)), rate_(rate), scores_(parameters_.size()) {}

void GradientScores::add(const ReleasedSum& released) {
  const double sigma = released.noise_std / released.max_norm;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::uint32_t j = parameters_[i];
    const double x =
        (static_cast<double>(released.sum[j]) - static_cast<double>(released.ordinary[j])) /
        released.max_norm;
    scores_[i] += std::log1p(rate_ * std::expm1((x - 0.5) / (sigma * sigma)));
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
