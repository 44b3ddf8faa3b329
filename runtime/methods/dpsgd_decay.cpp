#include "runtime/methods/dpsgd_decay.hpp"

#include <cmath>

#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"
#include "runtime/methods/noise_spans.hpp"

namespace cudp {
namespace {

PrivacyPlan decay_plan(const MethodContext& context) {
  const TrainConfig& config = context.config;
  PrivacyPlan plan = plan_without_noise(context, {.clip_norm = config.clip_norm});
  const double k = config.of<DpSgdDecayOptions>().noise_decay;
  const std::uint64_t epoch = context.steps_per_epoch();
  plan.noise = noise_spans(
      plan.steps, [&](std::uint64_t t) { return decaying_noise(k, t / epoch); }, epoch);
  return with_noise(config, std::move(plan));
}

}  // namespace

double decaying_noise(double k, std::uint64_t epoch) {
  return std::exp(-k * static_cast<double>(epoch));
}

DpSgdDecay::DpSgdDecay(const MethodContext& context) : DpSgd(context, decay_plan(context)) {}

MethodEntry dpsgd_decay_method() {
  using namespace option_rows;
  MethodEntry entry = dpsgd_method();
  entry.name = "dpsgd-decay";
  entry.options = {number("noise-decay", "K", &DpSgdDecayOptions::noise_decay, kNotNegative,
                          "dpsgd-decay: noise sigma exp(-K t), t in epochs")};
  entry.make = make_method<DpSgdDecay>;
  return entry;
}

}  // namespace cudp
