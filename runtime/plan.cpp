#include "runtime/plan.hpp"

namespace cudp {

std::vector<privacy::Phase> releases(const PrivacyPlan& plan, std::uint64_t steps) {
  std::vector<privacy::Phase> phases;
  if (plan.size_noise > 0.0) phases.push_back({1.0, plan.size_noise, 1});
  if (steps > 0) phases.push_back({plan.sampling_rate(), plan.noise_multiplier, steps});
  return phases;
}

std::span<const double> fixed_order(const PrivacyPlan& plan) {
  return plan.order > 0.0 ? std::span(&plan.order, 1) : std::span<const double>();
}

privacy::Guarantee guarantee(const PrivacyPlan& plan, std::span<const privacy::Phase> phases) {
  privacy::Guarantee g = privacy::epsilon_of(phases, plan.delta - plan.failure, fixed_order(plan));
  g.delta = plan.delta;
  return g;
}

}  // namespace cudp
