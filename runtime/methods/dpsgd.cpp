#include "runtime/methods/dpsgd.hpp"

#include "runtime/base/error.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {

DpSgd::DpSgd(const MethodContext& context)
    : DpSgd(context,
            with_noise(context.config,
                       plan_without_noise(context, {.clip_norm = context.config.clip_norm}))) {}

StepRecipe DpSgd::recipe() const {
  return {// B_t: each example with probability q, or in one step of each epoch
          .draw = plan().draw(),
          // sum over B_t of g_i / max(1, |g_i| / C), g_i the gradient of example i's loss
          .contribution = ClippedGradient{config().clipping},
          // g~ = (sum + N(0, sigma^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~, or another
          // optimizer's step with g~
          .optimizer = optimizer_settings(config())};
}

MethodEntry dpsgd_method() {
  MethodEntry entry;
  entry.name = "dpsgd";
  entry.uses = engine_method_options();
  entry.uses.emplace_back("clip");
  entry.plans_ahead = true;
  entry.make = make_method<DpSgd>;
  return entry;
}

MethodEntry dpsgd_ts_method() {
  MethodEntry entry = dpsgd_method();
  entry.name = "dpsgd-ts";
  entry.complete = [](TrainConfig& c) {
    if (c.activation.empty()) c.activation = "tempered-sigmoid";
    if (c.activation != "tanh" && c.activation != "tempered-sigmoid" &&
        c.activation != "tempered_sigmoid")
      throw InputError(
          "--activation: expected tempered-sigmoid or tanh for method dpsgd-ts, found '" +
          c.activation + "'");
  };
  return entry;
}

MethodEntry sgd_ma_method() {
  MethodEntry entry = dpsgd_method();
  entry.name = "sgd-ma";
  entry.defaults = [](TrainConfig& c) { c.accountant = privacy::AccountantKind::rdp; };
  entry.complete = [](TrainConfig& c) {
    if (c.accountant != privacy::AccountantKind::rdp)
      throw InputError("--accountant: expected rdp for method sgd-ma");
  };
  return entry;
}

MethodEntry sgd_adv_method() {
  MethodEntry entry = dpsgd_method();
  entry.name = "sgd-adv";
  entry.defaults = [](TrainConfig& c) { c.accountant = privacy::AccountantKind::advanced; };
  entry.complete = [](TrainConfig& c) {
    if (c.accountant != privacy::AccountantKind::advanced)
      throw InputError("--accountant: expected advanced for method sgd-adv");
  };
  return entry;
}

}  // namespace cudp
