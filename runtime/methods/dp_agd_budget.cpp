#include "runtime/methods/dp_agd_budget.hpp"

#include <algorithm>
#include <cmath>

#include "privacy/rdp/zcdp.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

privacy::Budget dp_agd_budget(const TrainConfig& config) {
  const double epsilon = *config.epsilon;
  const double delta = *config.delta * (1.0 - kFailureShare);
  if (config.conversion == Conversion::tight) return privacy::zcdp_budget(epsilon, delta);
  const double l = -std::log(delta);
  const double root = std::sqrt(l + epsilon) - std::sqrt(l);
  return privacy::zcdp_budget(std::min(epsilon, privacy::epsilon_from_zcdp(root * root, delta)),
                              delta);
}

DpAgdSettings dp_agd_settings(const TrainConfig& config, double rho, double examples, double most) {
  DpAgdSettings s;
  s.most_examples = most;
  if (config.budget_split == BudgetSplit::rho) {
    const double splits =
        config.splits > 0.0 ? config.splits : std::max(10.0, examples * *config.epsilon / 100.0);
    s.rho_gradient = rho / splits * config.gradient_share;
    s.rho_selection = rho / splits * (1.0 - config.gradient_share);
  } else {
    const double epsilon = *config.epsilon / (2.0 * (config.splits > 0.0 ? config.splits : 60.0));
    s.rho_gradient = epsilon * epsilon / (4.0 * std::log(1.25 / *config.delta));
    s.rho_selection = epsilon * epsilon / (config.noisy_min == SelectionNoise::gumbel ? 8.0 : 2.0);
  }
  s.gamma = config.gamma;
  s.shrink = config.step_shrink;
  s.gradient_clip = config.clip;
  s.loss_clip = config.loss_clip;
  s.l2 = config.l2;
  s.selection = config.noisy_min;
  if (config.mini_batch > 0)
    s.threshold = static_cast<std::uint64_t>(
        std::ceil(std::min(1.0, static_cast<double>(config.mini_batch) / examples) * 0x1p32));
  return s;
}

}  // namespace cudp
