#pragma once
#include <cstdint>
#include <span>

#include "kernels/contribution/contribution.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

/// Properties of a method's sums that its plan depends on.
struct SumShape {
  double clip_norm = 1.0;
  Contribution contribution = ClippedGradient{};
  /// Upper bound on an example's sampling rate; if it is below 1, a batch must be smaller than the
  /// number of examples.
  double largest_rate = 1.0;
};

/// Makes a plan without its noise: sampling rate, number of steps, clipping norm and sensitivity.
/// Throws InputError on a batch larger than the number of examples (the released one if it is
/// private), or a clipping norm that float32 cannot represent well enough.
PrivacyPlan plan_without_noise(const MethodContext& context, const SumShape& shape);

/// Returns config.sigma, or the noise multiplier that keeps all releases of the plan within
/// config.epsilon. Throws BudgetError if there is none.
double noise_multiplier_for(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the plan with its noise multiplier, checked against the budget.
PrivacyPlan with_noise(const TrainConfig& config, PrivacyPlan plan);

/// Returns whether a filter must enforce the budget: if the noise of the plan's steps differs, and
/// steps may be repeated with fresh noise after a key is lost. The steps that are repeated may then
/// have been chosen by looking at released values.
bool needs_filter(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the Renyi order of the filter for a plan that has its noise.
double filter_order(PrivacyPlan plan);

/// Throws BudgetError unless the plan stays within config.epsilon, and within the limits of a
/// meaningful guarantee.
void check_budget(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the maximum number of steps from `first`, at most `wanted`, that stay within epsilon
/// after the releases of `already`.
std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Release> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted);

}  // namespace cudp
