#include "runtime/run/make_plan.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "kernels/clipping/coordinates.hpp"
#include "privacy/solve.hpp"
#include "runtime/base/error.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {
namespace {

/// Noise on what features rest on: of the given multiplier, or such that it takes its share of 1 /
/// sigma^2, in which Gaussian releases add up, of one that spends the whole budget.
double feature_noise(const TrainConfig& config) {
  if (!rest_on_release(feature_settings(config))) return 0.0;
  if (config.feature_sigma) return *config.feature_sigma;
  const privacy::Step once = privacy::step_of({.q = 1.0, .sigma = 1.0, .steps = 1});
  return privacy::solve_sigma({}, once, *config.epsilon, *config.delta) /
         std::sqrt(*config.feature_share);
}

/// A Renyi order close to the best for this budget, from the budget alone: the best one for a
/// Gaussian release is 1 + sqrt(L / rho) with L = ln(1/delta) and rho = (sqrt(L + epsilon) -
/// sqrt(L))^2; subsampling makes it smaller. Over epsilon 0.5 to 8 and q 0.0085 to 0.1, 0.65 costs
/// at most 3 % of sigma.
double order_for(double epsilon, double delta) {
  const double l = -std::log(delta);
  const double root = std::sqrt(l + epsilon) - std::sqrt(l);
  return std::fmin(1.0 + 0.65 * std::sqrt(l) / root, 1e5);
}

/// Squares of a gradient's numbers below 2^-126 may vanish from its norm in float32, d of them:
/// what they could add must be small beside C^2. A layer's own bound is C / sqrt(layers).
void check_clip(const Network& network, Clipping clipping, double clip_norm) {
  const double layers = clipping == Clipping::per_layer ? network.groups : 1.0;
  const double least =
      std::sqrt(layers * static_cast<double>(network.parameter_count) * 0x1p-126 / 0x1p-14);
  if (clip_norm < least)
    throw InputError(
        fmt::format("--clip: expected at least {:.3g} for {} parameters, whose squares are lost "
                    "below, found {:.3g}",
                    least, network.parameter_count, clip_norm));
}

double calibrated_sigma(const TrainConfig& config, const PrivacyPlan& plan) {
  PrivacyPlan unit = plan;
  unit.noise_multiplier = 1.0;
  const std::vector<privacy::Step> sums = privacy::steps_of(step_phases(unit, 0, plan.steps));
  std::vector<privacy::Phase> before = releases(plan, 0);
  if (plan.epoch_releases > 0) before.push_back({1.0, plan.epoch_noise, plan.epoch_releases});
  const privacy::Question budget = question(plan, before);
  const double delta = plan.delta - plan.failure;
  try {
    return sums.size() == 1 ? privacy::solve_sigma(budget, sums[0], *config.epsilon, delta)
                            : privacy::solve_noise_factor(budget, sums, *config.epsilon, delta);
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  } catch (const std::invalid_argument& e) {
    throw InputError(e.what());
  }
}

}  // namespace

PrivacyPlan make_plan(const TrainConfig& config, const Network& network, const TrainingSize& size,
                      const Arithmetic& arithmetic) {
  auto batch = static_cast<double>(config.batch);
  const bool dpis = config.method == MethodKind::dpis;
  // DPIS needs b < N~, so that no example is certain to be drawn.
  const double largest_batch_size = dpis ? size.value * (1.0 - 1e-4) : size.value;
  if (batch > largest_batch_size) {
    if (size.is_public())
      throw InputError(fmt::format("--batch: expected {} the {} training examples, found {}",
                                   dpis ? "less than" : "at most", size.value, config.batch));
    batch = largest_batch_size;
  }
  if (config.accountant == privacy::Accountant::advanced && !size.is_public())
    throw InputError(
        "--accountant: expected pld or rdp where the number of training examples is private "
        "(--size-is-public if it is not), found advanced");
  PrivacyPlan plan;
  plan.delta = *config.delta;
  plan.size_noise = size.noise;
  plan.feature_noise = feature_noise(config);
  // DPIS chooses as it goes: only Renyi divergences of one order add up then.
  plan.accountant = dpis ? privacy::Accountant::rdp : config.accountant;
  if (!size.is_public()) plan.order = order_for(*config.epsilon, plan.delta);
  // Rounded up, so that the rate is never below the one asked for, and exact afterwards.
  plan.sampling_threshold = static_cast<std::uint64_t>(std::ceil(batch / size.value * 0x1p32));
  plan.expected_batch = batch;
  plan.steps = config.steps ? static_cast<std::uint64_t>(*config.steps)
                            : static_cast<std::uint64_t>(*config.epochs) *
                                  size.steps_per_epoch(config.batch);

  // Two things may fail: the bound on N, where that is private, and the bound on a batch given it.
  plan.failure = kFailureShare * plan.delta;
  const double most_examples = size.most(0.5 * plan.failure);
  const std::uint64_t largest =
      largest_batch(plan.sampling_rate() * most_examples, plan.steps, 0.5 * plan.failure);
  plan.largest_sum = dpis ? static_cast<std::uint64_t>(std::ceil(most_examples)) : largest;
  const bool transformed = config.method == MethodKind::adaclip;
  plan.clip_norm = transformed ? 1.0 : config.clip;
  plan.sensitivity =
      plan.clip_norm * (1.0 + sensitivity_rounding_error(network, largest, arithmetic,
                                                         transformed ? kLargestShift : 0.0));

  check_clip(network, config.clipping, plan.clip_norm);

  plan.noise = noise_over_time(config, plan.steps, size.steps_per_epoch(config.batch));
  if (dpis) {
    const std::uint64_t epoch = size.steps_per_epoch(config.batch);
    plan.epoch_releases = (plan.steps + epoch - 1) / epoch * (config.dpis_adaptive_clip ? 2 : 1);
    plan.epoch_noise = config.dpis_total_noise * size.value;
    if (plan.order == 0.0) {
      // The best order of the worst case, K~ = N~ C throughout, fixed before anything is released.
      plan.noise_multiplier = calibrated_sigma(config, plan);
      plan.order = guarantee(plan, releases(plan, plan.steps)).order;
    }
  }
  if (config.sigma)
    plan.noise_multiplier = *config.sigma;
  else if (config.calibration == Calibration::theorem41)
    plan.noise_multiplier =
        theorem41_sigma(*config.epsilon, plan.delta, size.value, batch, plan.steps, plan.noise);
  else
    plan.noise_multiplier = calibrated_sigma(config, plan);
  const double epsilon = guarantee(plan, releases(plan, plan.steps)).epsilon;
  if (config.epsilon && !(epsilon <= *config.epsilon))
    throw BudgetError(
        fmt::format("{} steps at sigma {:.6g} spend epsilon {:.6g}, the budget is {:.6g}",
                    plan.steps, plan.noise_multiplier, epsilon, *config.epsilon));
  if (epsilon > kMostEpsilon && !config.allow_weak_privacy)
    throw BudgetError(fmt::format(
        "{} steps at sigma {:.6g} spend epsilon {:.6g}, expected at most {} (--allow-weak-privacy)",
        plan.steps, plan.noise_multiplier, epsilon, kMostEpsilon));
  return plan;
}

std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Phase> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted) {
  const auto fits = [&](std::uint64_t steps) {
    std::vector<privacy::Phase> phases(already.begin(), already.end());
    const std::vector<privacy::Phase> more = step_phases(plan, first, first + steps);
    phases.insert(phases.end(), more.begin(), more.end());
    return phases.empty() || guarantee(plan, phases).epsilon <= epsilon;
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
