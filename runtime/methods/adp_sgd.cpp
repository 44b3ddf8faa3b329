#include "runtime/methods/adp_sgd.hpp"

#include <cmath>

namespace cudp {

void AdpSgd::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  std::vector<StepScalars> scalars;  // eta_t, alpha_t sigma C, 1 / b
  for (std::uint64_t t = first; t < last; ++t) scalars.push_back(schedule().at(t));

  engine.run(first, scalars, [this](Engine& step) {
    step.sample_batch();
    step.sum_clipped_gradients();
    // b_{t+1}^2 = b_t^2 + max(beta_t |g~|^2, nu);  eta_t = eta / b_{t+1}
    if (adaptive_) step.adapt_learning_rate();
    // g~ = (sum + alpha_t N(0, sigma^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~
    step.add_noise_and_update();
  });
}

double adp_noise(const TrainConfig& c, std::uint64_t steps, std::uint64_t steps_per_epoch,
                 std::uint64_t step) {
  if (c.adp_constant_noise) return 1.0;
  if (c.schedule == ScheduleKind::adaptive)
    return std::pow(c.adaptive_start + static_cast<double>(step) * c.adp_noise_growth, 0.25);
  return std::sqrt(c.lr / learning_rate(c, steps, steps_per_epoch, step));
}

double theorem41_sigma(double epsilon, double delta, double n, double batch, std::uint64_t steps,
                       const std::vector<NoiseSpan>& noise) {
  double sum = noise.empty() ? static_cast<double>(steps) : 0.0;
  std::uint64_t from = 0;
  for (const NoiseSpan& span : noise) {
    sum += static_cast<double>(span.until - from) / (span.scale * span.scale);
    from = span.until;
  }
  const double b_delta =
      std::log(16.0 * static_cast<double>(steps) / (n * delta)) * std::log(1.25 / delta);
  return 16.0 * batch / (n * epsilon) * std::sqrt(b_delta * sum);
}

}  // namespace cudp
