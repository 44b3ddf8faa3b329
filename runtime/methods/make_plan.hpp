#pragma once
#include <cstdint>
#include <span>

#include "kernels/contribution/contribution.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

/// Properties of a method's noisy sums, from which its privacy plan (sampling, noise, number of
/// steps) is made.
struct SumShape {
  double clip_norm = 1.0;
  Contribution contribution = ClippedGradient{};
  /// Upper bound on the probability with which an example is in a batch. If it is below 1, the
  /// batch must be smaller than the number of examples.
  double largest_rate = 1.0;
};

/// Makes the privacy plan of a training except for its noise: sampling rate, number of steps,
/// clipping norm and sensitivity. Throws InputError on a batch larger than the number of examples
/// (the noisy number if it is private), or a clipping norm too small for float32.
PrivacyPlan plan_without_noise(const MethodContext& context, const SumShape& shape);

/// Returns config.sigma, or else the smallest noise multiplier with which all releases of the
/// privacy plan stay within config.epsilon. Throws BudgetError if there is none.
double noise_multiplier_for(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the privacy plan with its noise multiplier set: config.sigma, or else the smallest one
/// that stays within config.epsilon. Throws BudgetError if there is none or the plan exceeds the
/// budget.
PrivacyPlan with_noise(const TrainConfig& config, PrivacyPlan plan);

/// Returns whether a privacy filter must enforce the budget during training. This is the case if
/// the noise differs between steps and TrainConfig::fresh_noise_allowed is set. If such a run loses
/// its random key, it repeats steps with new noise, and which steps these are may depend on
/// released values, so the costs cannot be added up in advance.
bool needs_filter(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the order of the Renyi divergences that a privacy filter for this plan adds up. The plan
/// must have its noise.
double filter_order(PrivacyPlan plan);

/// Throws BudgetError if the epsilon of the planned releases exceeds config.epsilon, if the noise
/// of a step is too small or too large to be drawn exactly, or if the guarantee is too weak to be
/// meaningful and config.allow_weak_privacy is not set.
void check_budget(const TrainConfig& config, const PrivacyPlan& plan);

/// Returns the largest number of steps, at most `wanted`, that can be made from step `first` on so
/// that these steps and the releases in `already` together stay within epsilon.
std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Release> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted);

}  // namespace cudp
