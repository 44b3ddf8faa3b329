#include "runtime/methods/dpsgd_quantile.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

/// Valid range of --quantile-noise: the fraction of the privacy cost, measured as 1 / sigma^2, that
/// is spent on the noisy count. Outside of it, the noise of the count or of the gradient sum would
/// be too small or too large for its grid.
constexpr option_rows::Range kNoiseShare{
    .low = 1e-6, .high = 1.0 - 1e-6, .text = "a number of 1e-6 to 1 - 1e-6"};

PrivacyPlan quantile_plan(const MethodContext& context) {
  // Called only for its check: throws InputError if the minimum clipping norm is too small for
  // float32.
  plan_without_noise(context, {.clip_norm = context.config.of<QuantileOptions>().min_clip});
  return with_noise(context.config,
                    plan_without_noise(context, {.clip_norm = context.config.clip_norm}));
}

}  // namespace

DpSgdQuantile::DpSgdQuantile(const MethodContext& context)
    : DpSgdQuantile(context, quantile_plan(context)) {}

DpSgdQuantile::DpSgdQuantile(const MethodContext& context, const PrivacyPlan& plan)
    : EngineMethod(context, plan), clip_norm_(static_cast<float>(plan.clip_norm)) {}

MethodState DpSgdQuantile::state() const {
  MethodState state = EngineMethod::state();
  state.numbers["clip_norm"] = clip_norm_;
  return state;
}

void DpSgdQuantile::restore(const TrainingInputs& inputs, const MethodState& state) {
  EngineMethod::restore(inputs, state);
  clip_norm_ = state.numbers.at("clip_norm").get<float>();
}

double DpSgdQuantile::gradient_noise_multiplier() const {
  return plan().noise_multiplier / std::sqrt(1.0 - options().noise_share);
}

double DpSgdQuantile::count_noise() const {
  return plan().noise_multiplier / (2.0 * std::sqrt(options().noise_share));
}

/// Makes steps `step` to `until` - 1. In each step the engine counts the unclipped gradients and
/// updates the clipping norm itself; check_followed() then repeats the updates from the released
/// counts, and throws Error if a step used another norm. If the gate has a release observer, the
/// steps are made one at a time instead, by train_watched().
std::uint64_t DpSgdQuantile::train(std::uint64_t step, std::uint64_t until) {
  pass_gate(step, until);
  if (gate().release_observer() != nullptr) {
    for (std::uint64_t t = step; t < until; ++t) train_watched(t);
    return until;
  }
  std::vector<StepScalars> given;
  std::vector<std::int64_t> noise;
  for (std::uint64_t t = step; t < until; ++t) {
    given.push_back(schedule().at(t));
    noise.push_back(gate().draw_noise(count_release(t)));
  }
  const FollowedSteps steps =
      engine().run_following(recipe(), step, given, rule(), clip_norm_, noise);
  clip_norm_ = check_followed(steps, rule(), clip_norm_, given);
  seen_ += steps.diagnostics;
  return until;
}

void DpSgdQuantile::train_watched(std::uint64_t t) {
  run(engine(), t, t + 1);
  const Diagnostics batch = engine().diagnostics();
  seen_ += batch;
  const std::uint64_t halves = halves_of(batch.examples, batch.clipped, batch.non_finite);
  const double noisy = gate().release(count_release(t), noisy_count_of(rule(), halves, 0));
  clip_norm_ = next_clip(rule(), clip_norm_, units_of(noisy, rule().grid));
}

/// Returns the description of the release of step t's noisy count of unclipped gradients: name,
/// noise, charge. Exact counts are multiples of 1/2, so the grid is 1/2, or a smaller power of two
/// if the noise would otherwise be too few grid steps.
GaussianRelease DpSgdQuantile::count_release(std::uint64_t t) const {
  return {.name = "count of the gradients that were not clipped",
          .purpose = Stream::clipped_count,
          .step = t,
          .grid = noise_grid(count_noise(), 0.5),
          .noise_std = count_noise(),
          .sensitivity = 0.5,
          .charge = charge_of(t)};
}

ClipRule DpSgdQuantile::rule() const {
  return {.target = options().target,
          .rate = options().lr,
          .min_clip = options().min_clip,
          .max_clip = std::fmin(options().max_clip, 0x1p126),
          .expected_batch = plan().expected_batch,
          .grid = noise_grid(count_noise(), 0.5),
          .noise_multiplier = gradient_noise_multiplier(),
          // Sensitivity relative to C: slightly above 1, because of rounding.
          .sensitivity = plan().sensitivity / plan().clip_norm,
          .normalised = options().normalised};
}

StepRecipe DpSgdQuantile::recipe() const {
  return {// B_t: each example with probability q, or in one step of each epoch
          .draw = plan().draw(),
          // sum over B_t of g_i min(1, C_t / |g_i|), and the number of unclipped gradients
          .contribution = ClippedGradient{},
          // g~ = (sum + N(0, z_g^2 C_t^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~
          .optimizer = optimizer_settings(config())};
}

StepScalars DpSgdQuantile::scalars(std::uint64_t t) const {
  return scalars_at(rule(), clip_norm_, schedule().at(t));  // eta_t, z_g C_t, 1 / b, C_t
}

std::string DpSgdQuantile::mechanism() const {
  if (plan().epoch_steps > 0)
    return EngineMethod::mechanism() +
           ", of the sum of clipped gradients and the count of those below the clipping norm";
  return "Poisson-subsampled Gaussian (DP-SGD), of the sum of clipped gradients and the count of "
         "those below the clipping norm";
}

privacy::Promise DpSgdQuantile::promise(const privacy::Ledger& ledger, std::uint64_t step) const {
  privacy::Promise p = EngineMethod::promise(ledger, step);
  auto& sums = std::get<privacy::NoisySums>(p.how);
  sums.noise_std = gradient_noise_multiplier() * plan().sensitivity;  // value of the first step
  sums.quantile = {.target = options().target,
                   .min_clip_norm = options().min_clip,
                   .max_clip_norm = options().max_clip,
                   .last_clip_norm = clip_norm_,
                   .gradient_noise_multiplier = gradient_noise_multiplier(),
                   .count_sensitivity = 0.5,
                   .count_noise_std = count_noise()};
  return p;
}

MethodEntry dpsgd_quantile_method() {
  using namespace option_rows;
  using Options = QuantileOptions;
  MethodEntry entry;
  entry.name = "dpsgd-quantile";
  entry.options = {
      number("quantile-target", "G", &Options::target, kInsideUnit,
             "dpsgd-quantile: target share of the gradients that are not clipped"),
      number("quantile-lr", "L", &Options::lr, kPositive,
             "dpsgd-quantile: step size of the clipping norm, on a logarithmic scale"),
      number("quantile-noise", "S", &Options::noise_share, kNoiseShare,
             "dpsgd-quantile: share of a step's privacy (1 / sigma^2) that the count takes"),
      number("quantile-min", "C", &Options::min_clip, kPositive,
             "dpsgd-quantile: minimum clipping norm"),
      number("quantile-max", "C", &Options::max_clip, kPositive,
             "dpsgd-quantile: maximum clipping norm"),
      toggle("quantile-normalise", &Options::normalised,
             "dpsgd-quantile: steps in units of the clipping norm, so that the "
             "learning rate need not follow it")};
  entry.uses = engine_method_options();
  entry.uses.emplace_back("clip");
  entry.own_tuning =
      "its gradients are as long as the clipping norm that it moves to; type --quantile-normalise, "
      "which divides by that norm";
  entry.tuned_by = {"quantile-normalise", "lr"};
  entry.complete = [](TrainConfig& c) {
    const auto& o = c.of<Options>();
    if (c.clipping != Clipping::flat)
      throw InputError("--clipping: expected flat for method dpsgd-quantile");
    if (!(o.min_clip <= c.clip_norm && c.clip_norm <= o.max_clip))
      throw InputError(
          "--clip: expected from --quantile-min to --quantile-max for method "
          "dpsgd-quantile, which starts with it");
  };
  entry.make = make_method<DpSgdQuantile>;
  return entry;
}

}  // namespace cudp
