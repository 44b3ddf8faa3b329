#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "privacy/verify/settings.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/listed.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/cli/run_certificate.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/methods/make_plan.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/run/folder.hpp"

namespace cudp {
namespace {

/// Numbers from which the epsilon of a run is computed: the plan of its releases, the number of
/// examples and the batch size, and epsilon and delta.
struct Planned {
  PrivacyPlan plan;
  TrainingSize size;
  std::int64_t batch = 0;
  double epsilon = 0.0;  ///< stated by the certificate, or the result of the changes
  double delta = 0.0;    ///< includes the part for the noisy number of examples
};

using Changes = std::map<std::string, double>;

const std::vector<std::string>& keys() {
  static const std::vector<std::string> all = {"epochs", "steps",   "batch",
                                               "sigma",  "epsilon", "delta"};
  return all;
}

bool is_whole(const std::string& key) {
  return key == "epochs" || key == "steps" || key == "batch";
}

Changes changes_of(const std::string& text) {
  Changes changes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string key = part.substr(0, equals);
    if (std::ranges::find(keys(), key) == keys().end())
      throw InputError("--what-if: expected " + listed(keys()) + " with =VALUE, found '" + part +
                       "'");
    const std::string value = part.substr(std::min(equals + 1, part.size()));
    const std::optional<double> read = read_number<double>(value);
    const double number = read.value_or(0.0);
    const double high = key == "delta" ? 1.0 : 1e9;
    if (!(number > 0.0 && number <= high) || (key == "delta" && number == 1.0) ||
        (is_whole(key) && number != std::floor(number)))
      throw InputError(fmt::format("--what-if {}: expected a {}number {}, found '{}'", key,
                                   is_whole(key) ? "whole " : "",
                                   key == "delta" ? "in (0, 1)" : "> 0, up to 1e9", value));
    if (!changes.emplace(key, number).second)
      throw InputError("--what-if: expected each change once, found " + key + " twice");
  }
  for (const auto& [one, other] : {std::pair{"epochs", "steps"}, std::pair{"sigma", "epsilon"}})
    if (changes.contains(one) && changes.contains(other))
      throw InputError(std::string("--what-if: expected either ") + one + " or " + other +
                       ", found both in '" + text + "'");
  return changes;
}

/// Returns the kind of accountant that the settings file in the certificate's folder states; `best`
/// if there is no such file.
privacy::AccountantKind accountant_of(const NamedCertificate& c) {
  const std::filesystem::path settings = c.file.parent_path() / RunFolder::kConfig;
  std::error_code none;
  if (!std::filesystem::is_regular_file(settings, none)) return privacy::AccountantKind::best;
  try {
    const std::string name = verify::Settings(read_file(settings)).text("accountant");
    for (const auto& kind : kAccountants)
      if (kind.name == name) return kind.value;
  } catch (const std::invalid_argument& e) {
    throw InputError(settings.string() + ": " + e.what());
  }
  return privacy::AccountantKind::best;
}

/// Returns whether an entry of the certificate's list of releases stands for all training steps,
/// i.e. is the sampled Gaussian mechanism with the stated sampling rate and noise.
bool is_step(const privacy::Release& r, const verify::StatedNumbers& c) {
  return c.q > 0.0 && c.steps > 0 && r.count == c.steps &&
         r.mechanism == privacy::sampled_gaussian_mechanism(c.q, c.sigma);
}

/// Returns whether a release in the certificate precedes the training, such as the noisy number of
/// examples, so that changing the number of steps does not affect it.
bool is_before(const privacy::Release& r, const verify::StatedNumbers& c) {
  const auto* const gaussian = std::get_if<privacy::Gaussian>(&r.mechanism);
  return gaussian != nullptr && r.count == 1 &&
         (gaussian->sigma == c.size_noise || gaussian->sigma == c.feature_noise);
}

/// Reads the numbers of a finished run from its certificate. Throws InputError if its training
/// steps do not all make the same release.
Planned planned_run(const NamedCertificate& certificate) {
  const verify::StatedNumbers& c = certificate.stated;
  const std::string file = certificate.file.string();
  if (!c.is_finished())
    throw InputError(file + ": expected a finished run with --what-if, found one that is " +
                     c.status);
  PrivacyPlan plan;
  plan.sampling_threshold = c.threshold;
  plan.expected_batch = c.expected_batch;
  plan.steps = c.steps;
  plan.noise_multiplier = c.sigma;
  plan.delta = c.plan_delta();
  if (c.split) plan.count_epsilon = c.split->count_epsilon;
  plan.failure = c.failure;
  plan.group = c.max_rows;
  plan.order = c.order_fixed ? c.order : 0.0;
  plan.accountant = accountant_of(certificate);
  Planned run{.plan = std::move(plan),
              .size = {.value = c.size, .noise = c.size_noise, .unit_rows = c.max_rows},
              .batch = std::llround(c.expected_batch),
              .epsilon = c.training_epsilon,
              .delta = c.training_delta};
  std::size_t steps = 0;
  for (const privacy::Release& r : c.plan_releases()) {
    if (steps == 0 && is_step(r, c))
      ++steps;
    else if (is_before(r, c))
      run.plan.before.push_back(r);
    else
      steps = c.releases.size() + 1;
  }
  if (steps != 1 || c.sampling != "poisson" || c.size < 1.0 || run.batch < 1)
    throw InputError(
        file +
        ": expected a run of equal noisy steps of Poisson batches with --what-if, found one by " +
        c.method + " whose releases differ, or were chosen on the way");
  return run;
}

/// Changes the epsilon and delta of the run. If the number of examples is private, divides them
/// between the release of that number and the training, as a run does.
void set_budget(Planned& run, double epsilon, double delta) {
  PrivacyPlan& plan = run.plan;
  run.delta = plan.delta = delta;
  plan.failure = kFailureShare * delta;
  if (run.size.is_public()) return;
  const privacy::CountSplit split = privacy::split_for_count(epsilon, delta, run.size.unit_rows);
  std::erase_if(plan.before, [&](const privacy::Release& r) {
    return r.mechanism == privacy::Mechanism(privacy::Gaussian{run.size.noise});
  });
  run.size.noise = split.sigma;
  plan.count_epsilon = split.count_epsilon;
  plan.delta = split.training_delta;
  plan.order = 0.0;
}

Planned changed(Planned run, const Changes& changes) {
  const auto value = [&](const char* key) {
    const auto at = changes.find(key);
    return at == changes.end() ? 0.0 : at->second;
  };
  PrivacyPlan& plan = run.plan;
  const auto before = static_cast<double>(run.size.steps_per_epoch(run.batch));
  if (const double batch = value("batch"); batch > 0.0) {
    if (batch > run.size.value)
      throw InputError(fmt::format("--what-if batch: expected at most the {} rows, found {}",
                                   run.size.value, batch));
    run.batch = static_cast<std::int64_t>(batch);
    plan.expected_batch = batch;
    plan.sampling_threshold = poisson_threshold(batch, run.size.value);
    const auto after = static_cast<double>(run.size.steps_per_epoch(run.batch));
    plan.steps = static_cast<std::uint64_t>(
        std::fmax(1.0, std::round(static_cast<double>(plan.steps) / before * after)));
  }
  if (const double epochs = value("epochs"); epochs > 0.0)
    plan.steps = static_cast<std::uint64_t>(epochs) * run.size.steps_per_epoch(run.batch);
  if (const double steps = value("steps"); steps > 0.0)
    plan.steps = static_cast<std::uint64_t>(steps);
  const double epsilon = value("epsilon");
  const double delta = value("delta");
  if (epsilon > 0.0 || delta > 0.0)
    set_budget(run, epsilon > 0.0 ? epsilon : run.epsilon, delta > 0.0 ? delta : run.delta);
  if (const double sigma = value("sigma"); sigma > 0.0) plan.noise_multiplier = sigma;
  if (epsilon > 0.0) {
    TrainConfig config;
    config.epsilon = epsilon - plan.count_epsilon;
    plan.noise_multiplier = noise_multiplier_for(config, plan);
  }
  run.epsilon = plan.count_epsilon + guarantee(plan, releases(plan, plan.steps)).epsilon;
  return run;
}

void add_row(Answer& answer, const std::string& name, const Planned& run) {
  const double epochs = static_cast<double>(run.plan.steps) /
                        static_cast<double>(run.size.steps_per_epoch(run.batch));
  answer.json["rows"].push_back({{"change", name},
                                 {"epsilon", run.epsilon},
                                 {"delta", run.delta},
                                 {"sigma", run.plan.noise_multiplier},
                                 {"q", run.plan.sampling_rate()},
                                 {"batch", run.batch},
                                 {"steps", run.plan.steps},
                                 {"epochs", epochs}});
  answer.rows.emplace_back(name, fmt::format("{:<10}{:<10}{:<10}{:<8}{:<10}{:.4g}",
                                             rounded_up(run.epsilon), privacy::number(run.delta),
                                             fmt::format("{:.5g}", run.plan.noise_multiplier),
                                             run.batch, run.plan.steps, epochs));
}

}  // namespace

Answer what_if(const std::string& run, const std::vector<std::string>& changes) {
  const NamedCertificate certificate = read_run_certificate(run);
  const Planned own = planned_run(certificate);
  Answer answer{.json = {{"certificate", certificate.file.string()}},
                .rows = {{"", fmt::format("{:<10}{:<10}{:<10}{:<8}{:<10}{}", "epsilon", "delta",
                                          "sigma", "batch", "steps", "epochs")}}};
  add_row(answer, "as it is", own);
  for (const std::string& change : changes)
    add_row(answer, change, changed(own, changes_of(change)));
  if (certificate.stated.tuning)
    answer.rows.emplace_back("", "of one training: the tuning as a whole has another epsilon");
  if (certificate.stated.holdout)
    answer.rows.emplace_back("", "of what is trained on: held-out rows have a budget of their own");
  return answer;
}

}  // namespace cudp
