#include "runtime/methods/sgd.hpp"

#include <limits>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

/// Clipping norm with which a step is tried first. If a gradient was clipped, the step is repeated
/// with a norm that is kGrowth times as large.
constexpr float kFirstClipNorm = 64.0f;
constexpr float kGrowth = 2.0f;
/// Key under which a checkpoint stores the result of the private run that --compare-with names.
constexpr const char* kComparedWith = "compared_with";

PrivacyPlan sgd_plan(MethodContext context) {
  context.config.delta = 1e-5;  // used only for bounds on the size of a batch
  return plan_without_noise(context, {.clip_norm = kFirstClipNorm});
}

}  // namespace

Sgd::Sgd(const MethodContext& context)
    : EngineMethod(context, sgd_plan(context)), clip_norm_(kFirstClipNorm) {}

double Sgd::epsilon() const { return std::numeric_limits<double>::infinity(); }

std::string Sgd::describe() const {
  return fmt::format("no privacy: {} steps of expected batch {:.0f}, no clipping, no noise",
                     plan().steps, plan().expected_batch);
}

std::vector<std::string> Sgd::obstacles() const { return {"method sgd: trained without privacy"}; }

void Sgd::start(const TrainingInputs& inputs, const PrivacyBudget& budget) {
  EngineMethod::start(inputs, budget);
  const std::string& run = config().of<SgdOptions>().compare_with;
  if (!run.empty()) compared_with_ = read_comparison(run);
}

MethodState Sgd::state() const {
  MethodState state = EngineMethod::state();
  if (compared_with_) state.numbers[kComparedWith] = *compared_with_;
  return state;
}

void Sgd::restore(const TrainingInputs& inputs, const MethodState& state) {
  EngineMethod::restore(inputs, state);
  const auto compared = state.numbers.find(kComparedWith);
  if (compared != state.numbers.end() && !compared->is_null())
    compared_with_ = compared->get<Comparison>();
}

std::uint64_t Sgd::train(std::uint64_t step, std::uint64_t until) {
  const TrainState before = engine().state();
  if (!nothing_clipped(step, until, kFirstClipNorm)) {
    engine().set_state(before);
    for (std::uint64_t t = step; t < until; ++t) one_step(t);
  }
  return until;
}

void Sgd::one_step(std::uint64_t step) {
  const TrainState before = engine().state();
  for (float clip_norm = kFirstClipNorm; !nothing_clipped(step, step + 1, clip_norm);
       clip_norm *= kGrowth)
    engine().set_state(before);
}

bool Sgd::nothing_clipped(std::uint64_t first, std::uint64_t last, float clip_norm) {
  clip_norm_ = clip_norm;
  run(engine(), first, last);
  const Diagnostics d = engine().diagnostics();
  if (d.non_finite > 0)
    throw Error("training diverged: a gradient is not finite, or longer than 1e19; try a lower lr");
  if (d.clipped > 0) return false;
  seen_ += d;
  return true;
}

StepRecipe Sgd::recipe() const {
  return {// B_t: each example with probability q, or in one step of each epoch
          .draw = plan().draw(),
          // sum over B_t of g_i
          .contribution = ClippedGradient{},
          // g~ = sum / b;  theta_{t+1} = theta_t - eta_t g~
          .optimizer = optimizer_settings(config())};
}

StepScalars Sgd::scalars(std::uint64_t t) const {
  // The scalars of the schedule, but without noise, and with the clipping norm that is being tried.
  StepScalars s = schedule().at(t);
  s.noise_std = 0.0f;
  s.clip_norm = clip_norm_;
  return s;
}

privacy::Promise Sgd::promise(const privacy::Ledger&, std::uint64_t step) const {
  return {.epsilon = epsilon(),
          .delta = delta(),
          .method = config().method,
          .mechanism = "none: trained without privacy",
          .how = privacy::NoPrivacy{.expected_batch = plan().expected_batch, .steps = step}};
}

MethodEntry sgd_method() {
  using namespace option_rows;
  MethodEntry entry;
  entry.name = "sgd";
  entry.gives_privacy = false;
  entry.options = {
      text("compare-with", "DIR", &SgdOptions::compare_with,
           "sgd: a finished run with privacy on the same data, to show both accuracies")};
  entry.uses = engine_method_options();
  std::erase_if(entry.uses, [](const std::string& key) {
    return key == "sigma" || key == "accountant" || key == "clipping";
  });
  entry.ignores = {"clip", "sigma", "accountant", "clipping"};
  entry.complete = [](TrainConfig& c) {
    c.epsilon.reset();
    c.delta.reset();
    c.sigma.reset();
    c.clipping = Clipping::flat;
  };
  entry.fit = [](TrainConfig& c, const Network&, const Dataset&) {
    const std::string& run = c.of<SgdOptions>().compare_with;
    if (!run.empty()) read_comparison(run);  // throws if the run is missing
  };
  entry.make = make_method<Sgd>;
  return entry;
}

}  // namespace cudp
