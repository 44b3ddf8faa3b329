#include "runtime/methods/plan.hpp"

#include <algorithm>
#include <utility>

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
  if (plan.feature_noise > 0.0) phases.push_back({1.0, plan.feature_noise, 1});
  if (steps > 0 && plan.epoch_releases > 0)
    phases.push_back({1.0, plan.epoch_noise, plan.epoch_releases});
  const std::vector<privacy::Phase> sums = step_phases(plan, 0, steps);
  phases.insert(phases.end(), sums.begin(), sums.end());
  return phases;
}

privacy::Question question(const PrivacyPlan& plan, std::span<const privacy::Phase> phases) {
  privacy::Question q;
  q.steps = privacy::steps_of(phases);
  q.accountant = plan.accountant;
  if (plan.order > 0.0) {
    q.accountant = privacy::Accountant::rdp;
    q.orders = {plan.order};
  }
  return q;
}

privacy::Answer guarantee(const PrivacyPlan& plan, std::span<const privacy::Phase> phases,
                          double looseness) {
  privacy::Question q = question(plan, phases);
  q.looseness = looseness;
  privacy::Answer answer = privacy::Account(std::move(q)).epsilon(plan.delta - plan.failure);
  answer.delta = plan.delta;
  return answer;
}

}  // namespace cudp
