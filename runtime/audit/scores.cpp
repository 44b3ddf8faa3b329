#include "runtime/audit/scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace cudp {

GradientScores::GradientScores(std::vector<std::uint32_t> parameters, double rate)
    : parameters_(std::move(parameters)), rate_(rate) {}

void GradientScores::add(const ReleasedSum& released) {
  std::vector<float> x;
  for (const std::uint32_t j : parameters_)
    x.push_back(static_cast<float>(static_cast<double>(released.sum[j]) / released.most));
  x_.push_back(std::move(x));
  sigma_.push_back(released.noise_std / released.most);
}

std::vector<double> GradientScores::scores() const {
  const char* mode = std::getenv("MODE");
  const int window = mode ? std::atoi(mode) : 0;
  const bool linear = std::getenv("LINEAR");
  const auto T = static_cast<int>(x_.size());
  std::vector<double> s(parameters_.size());
  for (std::size_t k = 0; k < s.size(); ++k) {
    std::vector<double> cum(T + 1);
    for (int t = 0; t < T; ++t) cum[t + 1] = cum[t] + x_[t][k];
    for (int t = 0; t < T; ++t) {
      double bg = 0;
      if (window > 0) {
        int a = std::max(0, t - window), b = std::min(T, t + window + 1);
        bg = (cum[b] - cum[a] - x_[t][k]) / (b - a - 1);
      }
      double v = x_[t][k] - bg;
      s[k] += linear ? v / sigma_[t] / sigma_[t]
                     : std::log1p(rate_ * std::expm1((v - 0.5) / (sigma_[t] * sigma_[t])));
    }
  }
  return s;
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
