#include "runtime/methods/sgd.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

constexpr float kFirstBound = 64.0f;
constexpr float kGrowth = 2.0f;

PrivacyPlan sgd_plan(MethodContext context) {
  context.config.delta = 1e-5;  // of bounds on a batch's size alone
  return plan_without_noise(context, {.clip_norm = kFirstBound});
}

/// What a finished run with privacy released: run, dataset, method, epsilon, test_accuracy.
/// Throws InputError where the folder has no such run.
nlohmann::ordered_json released_by(const std::string& run) {
  const auto release = std::filesystem::path(run) / "release";
  const std::string expected = "--compare-with: expected the folder of a finished run with privacy";
  if (!std::filesystem::exists(release / "privacy.json"))
    throw InputError(fmt::format("{}, found no release/privacy.json in {}", expected, run));
  try {
    const auto certificate = nlohmann::json::parse(read_file(release / "privacy.json"));
    if (const std::string status = certificate.value("status", "finished"); status != "finished")
      throw InputError(fmt::format("{}, found one that is {} in {}", expected, status, run));
    std::string rows = read_file(release / "metrics.jsonl");
    while (rows.ends_with('\n')) rows.pop_back();
    const auto last = nlohmann::json::parse(rows.substr(rows.rfind('\n') + 1));
    if (!last.contains("test_accuracy"))
      throw InputError(fmt::format("{} and a released test accuracy, found none in {}", expected,
                                   (release / "metrics.jsonl").string()));
    return {{"run", run},
            {"dataset", certificate.at("dataset").get<std::string>()},
            {"method", certificate.at("method").get<std::string>()},
            {"epsilon", certificate.at("epsilon").get<double>()},
            {"test_accuracy", last.at("test_accuracy").get<double>()}};
  } catch (const nlohmann::json::exception& e) {
    throw InputError(fmt::format("{}, found {}: {}", expected, run, e.what()));
  }
}

}  // namespace

Sgd::Sgd(const MethodContext& context)
    : EngineMethod(context, sgd_plan(context)), bound_(kFirstBound) {}

double Sgd::epsilon() const { return std::numeric_limits<double>::infinity(); }

std::string Sgd::describe() const {
  return fmt::format("no privacy: {} steps of expected batch {:.0f}, no clipping, no noise",
                     plan().steps, plan().expected_batch);
}

std::vector<std::string> Sgd::obstacles() const { return {"method sgd: trained without privacy"}; }

void Sgd::start(const TrainingInputs& inputs, const PrivacyBudget& budget) {
  EngineMethod::start(inputs, budget);
  const std::string& run = config().of<SgdOptions>().compare_with;
  if (!run.empty()) compared_with_ = released_by(run);
}

MethodState Sgd::state() const {
  MethodState state = EngineMethod::state();
  state.numbers["compared_with"] = compared_with_;
  return state;
}

void Sgd::restore(const TrainingInputs& inputs, const MethodState& state) {
  EngineMethod::restore(inputs, state);
  compared_with_ = state.numbers.at("compared_with");
}

std::uint64_t Sgd::train(std::uint64_t step, std::uint64_t until) {
  const TrainState before = engine().state();
  if (!nothing_clipped(step, until, kFirstBound)) {
    engine().set_state(before);
    for (std::uint64_t t = step; t < until; ++t) one_step(t);
  }
  return until;
}

void Sgd::one_step(std::uint64_t step) {
  const TrainState before = engine().state();
  for (float bound = kFirstBound; !nothing_clipped(step, step + 1, bound); bound *= kGrowth)
    engine().set_state(before);
}

bool Sgd::nothing_clipped(std::uint64_t first, std::uint64_t last, float bound) {
  bound_ = bound;
  run(engine(), first, last);
  const Diagnostics d = engine().diagnostics();
  if (d.non_finite > 0)
    throw Error("training diverged: a gradient is not finite, or longer than 1e19; try a lower lr");
  if (d.clipped > 0) return false;
  seen_ += d;
  return true;
}

StepRecipe Sgd::recipe() const {
  return {// B_t: each example independently with probability q
          .draw = Poisson{plan().sampling_threshold},
          // sum over B_t of g_i
          .contribution = ClippedGradient{},
          // g~ = sum / b;  theta_{t+1} = theta_t - eta_t g~
          .optimizer = optimizer_settings(config())};
}

StepScalars Sgd::scalars(std::uint64_t t) const {
  StepScalars s = schedule().at(t);  // eta_t, 0, 1 / b, the bound that no gradient reaches
  s.noise_std = 0.0f;
  s.clip_norm = bound_;
  return s;
}

void Sgd::report(nlohmann::ordered_json& result, std::uint64_t step) const {
  result["steps"] = step;
  if (!compared_with_.is_null()) result["compared_with"] = compared_with_;
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
    if (!run.empty()) released_by(run);  // refuses one that is not there
  };
  entry.make = make_method<Sgd>;
  return entry;
}

}  // namespace cudp
