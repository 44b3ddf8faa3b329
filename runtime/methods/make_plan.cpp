#include "runtime/methods/make_plan.hpp"

#include <cmath>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "kernels/step/allocation.hpp"
#include "privacy/calibrate.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Throws InputError if the clipping norm is below min_clip_norm: rounding errors could then make a
/// sum more sensitive than the plan assumes.
void check_clip(const Network& network, Clipping clipping, double clip_norm) {
  const double min_clip = min_clip_norm(network, clipping);
  if (clip_norm < min_clip)
    throw InputError(
        fmt::format("--clip: expected at least {:.3g} for {} parameters: below that, a norm in "
                    "float32 loses squares that matter; found {:.3g}",
                    min_clip, network.parameter_count, clip_norm));
}

/// Throws InputError if random allocation, which puts each example into one random step of each
/// epoch, is not possible with the settings of `context` and this number of steps.
void check_epoch(const MethodContext& context, std::uint64_t steps) {
  const TrainingSize& size = context.size;
  if (size.unit_rows > 1)
    throw InputError(
        fmt::format("--sampling: expected poisson with units of up to {} rows, for which no bound "
                    "of allocation is known, found allocation",
                    size.unit_rows));
  if (steps > kMaxEpochSteps)
    throw InputError(fmt::format(
        "--batch: expected at least {:.0f} with --sampling allocation, found {}",
        std::ceil(size.value / static_cast<double>(kMaxEpochSteps)), context.config.batch));
}

}  // namespace

PrivacyPlan plan_without_noise(const MethodContext& context, const SumShape& shape) {
  const TrainConfig& config = context.config;
  const TrainingSize& size = context.size;
  const auto batch = static_cast<double>(config.batch);
  const double largest = size.value * shape.largest_rate;
  if (batch > largest)
    throw InputError(fmt::format(
        "--batch: expected {} the {} {}, found {}", largest < size.value ? "less than" : "at most",
        size.value, size.is_public() ? "training examples" : "rows of the noisy row count",
        config.batch));
  PrivacyPlan plan;
  plan.delta = *config.delta;
  plan.before = context.before;
  plan.group = size.unit_rows;
  plan.accountant = config.accountant;
  plan.memo.results = context.memo;
  if (context.split) plan.count_epsilon = context.split->count_epsilon;
  plan.expected_batch = batch;
  if (config.sampling == Sampling::allocation) {
    plan.epoch_steps = context.steps_per_epoch();
    check_epoch(context, plan.epoch_steps);
    plan.expected_batch = size.value / static_cast<double>(plan.epoch_steps);
  }
  plan.sampling_threshold = poisson_threshold(plan.expected_batch, size.value);
  plan.steps = config.steps
                   ? static_cast<std::uint64_t>(*config.steps)
                   : static_cast<std::uint64_t>(*config.epochs) * context.steps_per_epoch();
  plan.failure = kFailureShare * (context.split ? context.split->delta : plan.delta);
  plan.clip_norm = shape.clip_norm;
  plan.sensitivity = sensitivity(bound_of(shape.contribution, plan.clip_norm), context.network,
                                 context.arithmetic);
  check_clip(context.network, config.clipping, plan.clip_norm);
  return plan;
}

double noise_multiplier_for(const TrainConfig& config, const PrivacyPlan& plan) {
  if (config.sigma) return *config.sigma;
  PrivacyPlan unit = plan;
  unit.noise_multiplier = 1.0;
  const std::vector<privacy::Release> sums = step_releases(unit, 0, plan.steps);
  privacy::Composition before{.releases = plan.before, .group = plan.group};
  if (plan.epoch_releases > 0)
    before.releases.push_back({privacy::Gaussian{plan.epoch_noise}, plan.epoch_releases});
  const privacy::AccountantOptions options = accountant_options(plan);
  const double delta = plan.delta - plan.failure;
  privacy::AccountantMemo* const memo = plan.memo.results.get();
  try {
    if (sums.size() != 1)
      return privacy::calibrate_noise_factor(before, sums, *config.epsilon, delta, options);
    return memo != nullptr
               ? memo->calibrated_sigma(before, sums[0], *config.epsilon, delta, options)
               : privacy::calibrate_sigma(before, sums[0], *config.epsilon, delta, options);
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  } catch (const std::invalid_argument& e) {
    throw InputError(e.what());
  }
}

namespace {

/// Returns config.sigma if it is set. Otherwise returns the noise multiplier with which the plan
/// stays within epsilon, raised if necessary so that the noise multiplier of every step is at least
/// kMinNoiseMultiplier. More noise costs no privacy.
double allowed_noise_multiplier(const TrainConfig& config, const PrivacyPlan& plan) {
  const double needed = noise_multiplier_for(config, plan);
  if (config.sigma) return needed;
  double min_scale = 1.0;
  for (const NoiseSpan& span : plan.noise) min_scale = std::fmin(min_scale, span.scale);
  return std::fmax(needed, kMinNoiseMultiplier / min_scale * (1.0 + 1e-15));
}

}  // namespace

PrivacyPlan with_noise(const TrainConfig& config, PrivacyPlan plan) {
  check_allocation(plan);
  if (!needs_filter(config, plan)) {
    plan.noise_multiplier = allowed_noise_multiplier(config, plan);
    check_budget(config, plan);
    return plan;
  }
  // Chooses the noise for slightly less than the budget, because the filter rounds the cost of
  // every release up.
  TrainConfig less = config;
  less.epsilon = *config.epsilon * (1.0 - 1e-9);
  plan.accountant = privacy::AccountantKind::rdp;
  plan.noise_multiplier = allowed_noise_multiplier(less, plan);
  plan.order = filter_order(plan);
  plan.noise_multiplier = allowed_noise_multiplier(less, plan);
  check_budget(config, plan);
  return plan;
}

bool needs_filter(const TrainConfig& config, const PrivacyPlan& plan) {
  return config.fresh_noise_allowed && !plan.noise.empty();
}

double filter_order(PrivacyPlan plan) {
  plan.accountant = privacy::AccountantKind::rdp;
  return guarantee(plan, releases(plan, plan.steps)).order;
}

void check_budget(const TrainConfig& config, const PrivacyPlan& plan) {
  check_allocation(plan);
  double min_noise = plan.noise_multiplier;
  double max_noise = plan.noise_multiplier;
  for (const NoiseSpan& span : plan.noise) {
    min_noise = std::fmin(min_noise, plan.noise_multiplier * span.scale);
    max_noise = std::fmax(max_noise, plan.noise_multiplier * span.scale);
  }
  if (!(min_noise >= kMinNoiseMultiplier && max_noise <= kMaxNoiseMultiplier))
    throw BudgetError(fmt::format(
        "expected a noise multiplier of {} to {} on every step, found {:.6g}", kMinNoiseMultiplier,
        kMaxNoiseMultiplier, min_noise < kMinNoiseMultiplier ? min_noise : max_noise));
  const double epsilon = guarantee(plan, releases(plan, plan.steps)).epsilon;
  if (config.epsilon && !(epsilon <= *config.epsilon))
    throw BudgetError(fmt::format(
        "{} steps at sigma {:.6g} spend epsilon {:.6g}, the budget is {:.6g}{}", plan.steps,
        plan.noise_multiplier, epsilon, *config.epsilon,
        plan.count_epsilon > 0.0
            ? fmt::format(" without the {:.3g} of the noisy row count", plan.count_epsilon)
            : ""));
  if (epsilon > kMaxEpsilon && !config.allow_weak_privacy)
    throw BudgetError(fmt::format(
        "{} steps at sigma {:.6g} spend epsilon {:.6g}, expected at most {} (--allow-weak-privacy)",
        plan.steps, plan.noise_multiplier, epsilon, kMaxEpsilon));
}

std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Release> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted) {
  const auto fits = [&](std::uint64_t steps) {
    std::vector<privacy::Release> all(already.begin(), already.end());
    const std::vector<privacy::Release> more = step_releases(plan, first, first + steps);
    all.insert(all.end(), more.begin(), more.end());
    return all.empty() || guarantee(plan, std::move(all)).epsilon <= epsilon;
  };
  if (fits(wanted)) return wanted;
  std::uint64_t low = 0;
  std::uint64_t high = wanted;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace cudp
