#pragma once
#include <cstdint>
#include <span>

#include "kernels/contribution/contribution.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

/// The properties of the sums of a method.
struct SumShape {
  double clip_norm = 1.0;
  Contribution contribution = ClippedGradient{};
  double largest_rate = 1.0;  ///< what an example may be sampled with; below 1 a batch is less than
                              ///< all examples
};

/// A plan that lacks its noise: who is sampled how often, how large a sum may get, what one example
/// adds to it. Throws InputError on a batch larger than the number of examples, a private one as it
/// was released, or a clipping norm that float32 cannot keep.
PrivacyPlan plan_without_noise(const MethodContext& context, const SumShape& shape);

/// The noise multiplier that config.sigma gives, or that keeps all releases of the plan within
/// config.epsilon. Throws BudgetError where none does.
double noise_multiplier_for(const TrainConfig& config, const PrivacyPlan& plan);

/// The plan with that, within the budget.
PrivacyPlan with_noise(const TrainConfig& config, PrivacyPlan plan);

/// Whether a filter is to keep the budget of a plan whose steps differ in their noise: which of
/// them are repeated, where the key is lost, may have been chosen by what they showed.
bool needs_filter(const TrainConfig& config, const PrivacyPlan& plan);

/// The Renyi order of the filter of a plan that has its noise.
double filter_order(PrivacyPlan plan);

/// Throws BudgetError unless the plan stays within config.epsilon, and within what promises
/// something at all.
void check_budget(const TrainConfig& config, const PrivacyPlan& plan);

/// Most steps from `first` on, at most `wanted`, that stay within epsilon after what is spent
/// already.
std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Release> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted);

}  // namespace cudp
