#include "runtime/methods/sgd.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

constexpr double kFirstBound = 64.0;
constexpr float kGrowth = 16.0f;
constexpr float kLargestBound = 1e28f;

PrivacyPlan plan_of(MethodContext context) {
  context.config.delta = 1e-5;  // of bounds on a batch's size alone
  return plan_without_noise(context, {.clip_norm = kFirstBound});
}

}  // namespace

Sgd::Sgd(const MethodContext& context)
    : EngineMethod(context, plan_of(context)), bound_(static_cast<float>(kFirstBound)) {}

double Sgd::epsilon() const { return std::numeric_limits<double>::infinity(); }

std::string Sgd::describe() const {
  return fmt::format("no privacy: {} steps of expected batch {:.0f}, no clipping, no noise",
                     plan().steps, plan().expected_batch);
}

std::vector<std::string> Sgd::obstacles() const { return {"method sgd: trained without privacy"}; }

MethodState Sgd::state() const {
  MethodState state = EngineMethod::state();
  state.numbers["bound"] = bound_;
  return state;
}

void Sgd::restore(const TrainingInputs& inputs, const MethodState& state) {
  EngineMethod::restore(inputs, state);
  bound_ = state.numbers.at("bound").get<float>();
}

std::uint64_t Sgd::train(PrivacyBudget&, std::uint64_t step, std::uint64_t until) {
  const TrainState before = engine().state();
  for (;;) {
    run(engine(), step, until);
    const Diagnostics d = engine().diagnostics();
    if (d.clipped == 0) {
      seen_.loss += d.loss;
      seen_.norm += d.norm;
      seen_.examples += d.examples;
      seen_.non_finite += d.non_finite;
      return until;
    }
    if (bound_ >= kLargestBound)
      throw Error("training diverged: a gradient is longer than 1e28; try a lower lr");
    bound_ *= kGrowth;
    engine().set_state(before);
  }
}

void Sgd::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  std::vector<StepScalars> scalars;  // eta_t, 0, 1 / b
  for (std::uint64_t t = first; t < last; ++t) {
    scalars.push_back(schedule().at(t));
    scalars.back().noise_std = 0.0f;
  }
  engine.set_clip_norm(bound_);
  engine.run(first, scalars, [](Engine& step) {
    // B_t: each example independently with probability q
    step.sample_batch();
    // g~ = sum over B_t of g_i / b;  theta_{t+1} = theta_t - eta_t g~
    step.sum_clipped_gradients();
    step.add_noise_and_update();
  });
}

nlohmann::ordered_json Sgd::diagnostics() { return diagnostics_json(std::exchange(seen_, {})); }

void Sgd::certify(nlohmann::ordered_json& j, const privacy::Ledger&, std::uint64_t step) const {
  j["epsilon"] = epsilon();  // null in a file
  j["delta"] = delta();
  j["mechanism"] = "none: trained without privacy";
  j["method"] = config().method;
  j["expected_batch"] = plan().expected_batch;
  j["steps"] = step;
}

MethodEntry sgd_method() {
  MethodEntry entry;
  entry.name = "sgd";
  entry.gives_privacy = false;
  entry.uses = engine_method_options();
  std::erase_if(entry.uses, [](const std::string& key) {
    return key == "sigma" || key == "accountant" || key == "clipping";
  });
  entry.ignores = {"clip", "sigma", "accountant", "clipping"};
  entry.complete = [](TrainConfig& c) {
    c.epsilon.reset();
    c.delta.reset();
    c.sigma.reset();
    c.size_is_public = true;  // nothing of the run is released
    c.clipping = Clipping::flat;
  };
  entry.make = make_method<Sgd>;
  return entry;
}

}  // namespace cudp
