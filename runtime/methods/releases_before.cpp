#include "runtime/methods/releases_before.hpp"

#include <cmath>
#include <stdexcept>
#include <variant>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/features/features.hpp"

namespace cudp {

/// Returns the noise multiplier for the statistics from which features are computed:
/// config.feature_sigma if it is set; otherwise the one that spends the fraction
/// config.feature_share of the budget, measured as 1 / sigma^2 (sigma: noise multiplier), which
/// adds up for Gaussian releases.
double feature_noise(const TrainConfig& config, std::uint64_t unit_rows) {
  if (!rest_on_release(feature_settings(config))) return 0.0;
  if (config.feature_sigma) return *config.feature_sigma;
  return static_cast<double>(unit_rows) /
         (privacy::gaussian_mu(*config.epsilon, *config.delta) * std::sqrt(*config.feature_share));
}

std::vector<privacy::Release> releases_before(const TrainConfig& config, const TrainingSize& size,
                                              const std::optional<privacy::CountSplit>& split) {
  std::vector<privacy::Release> all;
  if (!size.is_public() && !split) all.push_back({privacy::Gaussian{size.noise}, 1});
  if (const double noise = feature_noise(config, size.unit_rows); noise > 0.0)
    all.push_back({privacy::Gaussian{noise}, 1});
  return all;
}

double mu_of(std::span<const privacy::Release> releases) {
  if (releases.empty()) return 0.0;
  double square = 0.0;
  for (const privacy::Release& release : releases) {
    const auto* gaussian = std::get_if<privacy::Gaussian>(&release.mechanism);
    if (gaussian == nullptr) throw std::invalid_argument("expected Gaussian noise");
    const double mu = 1.0 / gaussian->sigma;
    if (releases.size() == 1 && release.count == 1) return mu;
    square += static_cast<double>(release.count) * mu * mu;
  }
  return std::sqrt(square) * (1.0 + 1e-12);
}

}  // namespace cudp
