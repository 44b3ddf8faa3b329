#include "runtime/plan.hpp"

#include <algorithm>

namespace cudp {

double PrivacyPlan::noise_multiplier_at(std::uint64_t step) const {
  const auto span = std::ranges::upper_bound(noise, step, {}, &NoiseSpan::until);
  return span == noise.end() ? noise_multiplier : noise_multiplier * span->scale;
}

std::vector<privacy::Phase> step_phases(const PrivacyPlan& plan, std::uint64_t first,
                                        std::uint64_t last) {
  std::vector<privacy::Phase> phases;
  auto span = std::ranges::upper_bound(plan.noise, first, {}, &NoiseSpan::until);
  while (first < last) {
    const std::uint64_t end = span == plan.noise.end() ? last : std::min(last, span->until);
    phases.push_back({plan.sampling_rate(), plan.noise_multiplier_at(first), end - first});
    first = end;
    if (span != plan.noise.end()) ++span;
  }
  return phases;
}

std::vector<privacy::Phase> releases(const PrivacyPlan& plan, std::uint64_t steps) {
  std::vector<privacy::Phase> phases;
  if (plan.size_noise > 0.0) phases.push_back({1.0, plan.size_noise, 1});
  const std::vector<privacy::Phase> sums = step_phases(plan, 0, steps);
  phases.insert(phases.end(), sums.begin(), sums.end());
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
