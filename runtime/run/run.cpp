#include "runtime/run/run.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/stored_run.hpp"
#include "runtime/training/certify.hpp"

namespace cudp {

Run::Run(Experiment what, RunFolder where, const RandomKey& key)
    : experiment(std::move(what)),
      folder(std::move(where)),
      key_check(cudp::key_check(key)),
      seal(key),
      data_tag(training_data_tag(experiment, seal)) {}

std::unique_ptr<Method> Run::make_method() const {
  const Experiment& e = experiment;
  return method_entry(e.config.method)
      .make({.config = e.config,
             .network = e.network,
             .size = size,
             .arithmetic = e.backend.arithmetic(e.network),
             .before = releases_before(e.config, size)});
}

void Run::open_budget(privacy::Ledger ledger, std::vector<PrivacyBudget::Taken> taken) {
  budget.emplace(
      std::move(ledger), [this](const privacy::Ledger& l) { write_ledger(folder, l, seal); },
      std::move(taken));
}

void Run::save_checkpoint() const {
  const Experiment& e = experiment;
  cudp::save_checkpoint(folder.checkpoints(),
                        {.step = step,
                         .method = method->state(),
                         .parameters = e.network.parameter_count,
                         .size = size,
                         .config = write_config(e.config, Audience::owner),
                         .model = e.model_text,
                         .arithmetic = e.backend.arithmetic_name,
                         .program = program_id(),
                         .data = data_tag,
                         .key_check = key_check,
                         .ledger = budget->ledger(),
                         .taken = budget->taken(),
                         .released = gate->listed(),
                         .ledger_was_lost = ledger_was_lost,
                         .metrics = metrics,
                         .seconds = seconds,
                         .feature_release = e.feature_release},
                        seal);
}

Outputs Run::outputs() const { return {folder, experiment}; }

void Run::write_plan_certificate() const {
  outputs().write_certificate(make_plan_certificate(experiment, size, *method, budget->ledger(),
                                                    gate->listed(), step, last_step));
}

void Run::describe(Reporter& reporter) const {
  const Experiment& e = experiment;
  reporter.info(fmt::format(
      "{}{}, {} ({} parameters) on {}{}", e.data.name,
      size.is_public() ? fmt::format(" ({} training examples)", e.data.train.size()) : "",
      e.network.spec.name, e.network.parameter_count, e.backend.name,
      e.config.precision == Precision::tf32 ? " in TF32" : ""));
  for (const std::string& note : e.data.notes) reporter.info(note);
  reporter.info(method->describe());
  if (const double noise = feature_noise(e.config); noise > 0.0)
    reporter.info(fmt::format(
        "features rest on {}, released with sigma {:.5g}",
        e.config.features == Features::pca
            ? fmt::format(
                  "{} principal components of {} numbers", e.config.feature_dimensions,
                  static_cast<std::int64_t>(e.feature_release.size()) / e.config.feature_dimensions)
            : "the mean and variance of each channel",
        noise));
  for (const std::string& line : privacy_warnings(size.value, method->epsilon(), method->delta()))
    reporter.warn(line);
  if (size.noise > 0.1 * size.value)
    reporter.warn(fmt::format(
        "the number of training examples is private and known as {:.0f} +-{:.0f}; what follows "
        "from it may be far from what was meant (--size-is-public if it is)",
        size.value, size.noise));
}

}  // namespace cudp
