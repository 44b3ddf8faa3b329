#include "runtime/methods/adp_sgd.hpp"

#include <cmath>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"
#include "runtime/methods/noise_spans.hpp"

namespace cudp {
namespace {

constexpr Choice<Calibration> kCalibrations[] = {{"accountant", Calibration::accountant},
                                                 {"theorem41", Calibration::theorem41}};

PrivacyPlan adp_sgd_plan(const MethodContext& context) {
  const TrainConfig& config = context.config;
  PrivacyPlan plan = plan_without_noise(context, {.clip_norm = config.clip_norm});
  const std::uint64_t epoch = context.steps_per_epoch();
  plan.noise = noise_spans_on_grid(
      plan.steps, [&](std::uint64_t t) { return adp_noise(config, plan.steps, epoch, t); });
  if (config.of<AdpSgdOptions>().calibration == Calibration::accountant)
    return with_noise(config, std::move(plan));
  plan.noise_multiplier = theorem41_sigma(*config.epsilon, plan.delta, context.size.value,
                                          plan.expected_batch, plan.steps, plan.noise);
  if (needs_filter(config, plan)) plan.order = filter_order(plan);
  check_budget(config, plan);
  return plan;
}

}  // namespace

AdpSgd::AdpSgd(const MethodContext& context) : AdpSgd(context, adp_sgd_plan(context)) {}

void AdpSgd::initialise(TrainState& state) const {
  if (is_adaptive()) state.step_size_sum = options().adaptive_start;
}

StepRecipe AdpSgd::recipe() const {
  StepRecipe step{// B_t: each example with probability q, or in one step of each epoch
                  .draw = plan().draw(),
                  // sum over B_t of g_i / max(1, |g_i| / C)
                  .contribution = ClippedGradient{config().clipping},
                  // g~ = (sum + alpha_t N(0, sigma^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~
                  .optimizer = optimizer_settings(config())};
  // b_{t+1}^2 = b_t^2 + max(beta_t |g~|^2, nu);  eta_t = eta / b_{t+1}
  if (is_adaptive())
    step.step_size = StepSizeSettings{.weight = options().adaptive_weight,
                                      .period = steps_per_epoch(),
                                      .min_growth = options().adaptive_min};
  return step;
}

double adp_noise(const TrainConfig& c, std::uint64_t steps, std::uint64_t steps_per_epoch,
                 std::uint64_t step) {
  const auto& options = c.of<AdpSgdOptions>();
  if (options.constant_noise) return 1.0;
  if (c.schedule == ScheduleKind::adaptive)
    return std::pow(options.adaptive_start + static_cast<double>(step) * options.noise_growth,
                    0.25);
  return std::sqrt(c.lr / learning_rate(c, steps, steps_per_epoch, step));
}

double theorem41_sigma(double epsilon, double delta, double n, double batch, std::uint64_t steps,
                       const std::vector<NoiseSpan>& noise) {
  double sum = noise.empty() ? static_cast<double>(steps) : 0.0;
  std::uint64_t from = 0;
  for (const NoiseSpan& span : noise) {
    sum += static_cast<double>(span.until - from) / (span.scale * span.scale);
    from = span.until;
  }
  const double b_delta =
      std::log(16.0 * static_cast<double>(steps) / (n * delta)) * std::log(1.25 / delta);
  return 16.0 * batch / (n * epsilon) * std::sqrt(b_delta * sum);
}

MethodEntry adp_sgd_method() {
  using namespace option_rows;
  using Options = AdpSgdOptions;
  MethodEntry entry;
  entry.name = "adp-sgd";
  entry.options = {
      toggle("adp-constant-noise", &Options::constant_noise,
             "adp-sgd: the same noise at every step, which is dpsgd with adp-sgd's step sizes"),
      number("adp-noise-growth", "C", &Options::noise_growth, kNotNegative,
             "adp-sgd with schedule adaptive: noise sigma (b^2 + C t)^(1/4), b^2 adaptive-start"),
      choice("calibration", &Options::calibration, kCalibrations,
             "source of sigma: accountant, or theorem41 of the paper of adp-sgd"),
      with("poly-c", number("adaptive-start", "B", &Options::adaptive_start, kPositive,
                            "adaptive: lr / b, where b^2 starts here")),
      with("poly-c",
           number("adaptive-weight", "W", &Options::adaptive_weight, kPositive,
                  "adaptive: b^2 grows by max(W / (1 + t), 1) |g|^2, g the released gradient, t in "
                  "steps of the epoch")),
      with("poly-c", number("adaptive-least", "NU", &Options::adaptive_min, kPositive,
                            "adaptive: minimum growth of b^2"))};
  entry.uses = engine_method_options();
  entry.uses.emplace_back("clip");
  entry.adapts_step_size = true;
  entry.complete = [](TrainConfig& c) {
    const bool theorem = c.of<Options>().calibration == Calibration::theorem41;
    if (theorem && (!c.epsilon || c.sigma))
      throw InputError("--calibration: expected method adp-sgd and --epsilon alone for theorem41");
  };
  entry.make = make_method<AdpSgd>;
  return entry;
}

}  // namespace cudp
