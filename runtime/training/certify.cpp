#include "runtime/training/certify.hpp"

#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/accountant.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/report/pages.hpp"
#include "runtime/training/public_weights.hpp"

namespace cudp {
namespace {

using privacy::Certificate;
using Status = Certificate::Status;

/// Text of the certificate: the reason why there are no epsilons for groups of units if rows are
/// held out. Some units of a group may be trained on and others held out, so the group affects both
/// releases.
constexpr const char* kNoGroups =
    "not stated: of several units some may be trained on and others held out, and both parts "
    "together are bounded for single units only";

/// Returns the names of the flags, and descriptions of data, by which the user has weakened the
/// guarantee.
std::vector<std::string> unsafe_flags(const Experiment& e) {
  std::vector<std::string> flags = e.data.unsafe;
  if (e.config.unsafe_diagnostics) flags.emplace_back("unsafe-diagnostics");
  if (e.initial)
    if (std::string why = why_not_for_release(e.initial->input, e.data.name); !why.empty())
      flags.push_back(std::move(why));
  return flags;
}

std::vector<std::string> obstacles(const TrainConfig& config, Status status) {
  std::vector<std::string> all;
  if (status == Status::not_finished)
    all.emplace_back(
        "not finished: this is the plan of a run in progress or cut short; epsilon and delta are "
        "those planned for all of it, and no other epsilon is claimed for what it left so far");
  if (config.seed) all.emplace_back("seed: anyone who guesses it can subtract the noise");
  if (config.rng == Generator::philox)
    all.emplace_back("rng philox: not a cryptographic generator, its noise may be told apart");
  return all;
}

Certificate::TestSet test_set(const TrainConfig& config, const DataSplit& data) {
  if (config.holdout) return Certificate::TestSet::private_rows;  // regardless of their number
  if (!has_test_rows(config, data)) return Certificate::TestSet::none;
  return data.test_is_public ? Certificate::TestSet::public_rows
                             : Certificate::TestSet::private_rows;
}

/// Makes the parts that all certificates of runs have in common. more_unsafe: the method's reasons
/// not to publish the model.
Certificate fill(Status status, const Experiment& e, const TrainingSize& size,
                 privacy::Promise promise, const std::vector<std::string>& more_unsafe) {
  const TrainConfig& config = e.config;
  Certificate c;
  c.status = status;
  c.unsafe_flags = unsafe_flags(e);
  c.unsafe_flags.insert(c.unsafe_flags.end(), more_unsafe.begin(), more_unsafe.end());
  c.not_for_release = obstacles(config, status);
  c.not_for_release.insert(c.not_for_release.end(), c.unsafe_flags.begin(), c.unsafe_flags.end());
  c.epsilon = promise.epsilon;
  c.delta = promise.delta;
  c.promise = std::move(promise);
  if (e.data.schema != nullptr && e.data.schema->unit)
    c.unit = {.column = e.data.schema->unit->column, .max_rows = e.data.schema->unit->max_rows};
  c.dataset = e.data.name;
  c.normalise = name_of(config.normalise);
  c.features = name_of(config.features);
  if (const double sigma = feature_noise(config, size.unit_rows); sigma > 0.0) {
    c.feature_release = {.sigma = sigma, .dimensions = {}};
    if (config.features == Features::pca) c.feature_release->dimensions = config.feature_dimensions;
  }
  c.class_weights = config.class_weights;
  c.size = {.value = size.value, .noise_std = size.noise};
  c.test_set = test_set(config, e.data);
  c.precision = name_of(config.precision);
  c.rng = name_of(config.rng);
  c.seeded = config.seed.has_value();
  c.allow_weak_privacy = config.allow_weak_privacy;
  c.fresh_noise_allowed = config.fresh_noise_allowed;
  c.assumptions = e.data.assumptions;
  if (e.initial) c.initial_weights = e.initial->input;
  c.warnings = privacy_warnings(size.value,
                                std::fmax(c.promise.epsilon, config.holdout_epsilon.value_or(0.0)),
                                std::fmax(c.promise.delta, config.holdout_delta.value_or(0.0)));
  c.pages = kPagesFormat;
  const BuildInfo build = build_info();
  c.build = {.version = build.version,
             .commit = build.commit,
             .compiler = build.compiler,
             .backend = std::string(e.backend.name)};
  return c;
}

/// Makes the certificate of a run. ledger: everything that was charged. released: noisy values that
/// were released in addition to those of the training steps. step: number of steps done.
Certificate certificate_of(Status status, const Experiment& e, const TrainingSize& size,
                           const Method& method, const privacy::Ledger& ledger,
                           const std::vector<privacy::NoisyValue>& released, std::uint64_t step) {
  Certificate c = fill(status, e, size, method.promise(ledger, step), method.obstacles());
  if (status == Status::finished)
    c.groups = e.config.holdout ? privacy::Groups{.bounds = {}, .not_stated = kNoGroups}
                                : method.groups(ledger);
  c.split = ledger.split();
  c.noisy_values = released;
  c.releases_repeated = ledger.repeated();
  c.keys_lost = ledger.keys_lost();
  return c;
}

}  // namespace

std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta) {
  std::vector<std::string> warnings;
  if (std::isinf(epsilon))
    return {"trained without privacy: what is made of the training examples may show any of them"};
  if (delta * training_size > 1.0)
    warnings.push_back(fmt::format(
        "delta {:.3g} is above 1 / {:.0f}, one over the number of training examples: a release of "
        "one example as it is would satisfy it",
        delta, training_size));
  if (epsilon > 20.0)
    warnings.push_back(fmt::format(
        "epsilon {:.4g} is above 20: the guarantee rules out next to nothing", epsilon));
  return warnings;
}

Certificate make_certificate(const Experiment& e, const TrainingSize& size, const Method& method,
                             const privacy::Ledger& ledger,
                             const std::vector<privacy::NoisyValue>& released, std::uint64_t step) {
  return certificate_of(Status::finished, e, size, method, ledger, released, step);
}

Certificate make_plan_certificate(const Experiment& e, const TrainingSize& size,
                                  const Method& method, const privacy::Ledger& ledger,
                                  const std::vector<privacy::NoisyValue>& released,
                                  std::uint64_t step, std::uint64_t last_step) {
  return certificate_of(Status::not_finished, e, size, method, method.planned(ledger, last_step),
                        released, step);
}

Certificate make_refusal_certificate(const Experiment& e, const TrainingSize& size,
                                     const privacy::Ledger& ledger) {
  const privacy::PrivacyBound bound =
      privacy::Accountant({.releases = ledger.releases(), .group = size.unit_rows})
          .epsilon(*e.config.delta);
  return fill(
      Status::refused, e, size,
      {.epsilon = bound.epsilon,
       .delta = bound.delta,
       .method = e.config.method,
       .mechanism = "Gaussian noise on the number of training examples; nothing was trained",
       .how = privacy::CountedExamples{.releases = {{privacy::Gaussian{size.noise}, 1}},
                                       .accountant = std::string(privacy::bound_name(bound))}},
      {});
}

}  // namespace cudp
