#include "runtime/run/certificate.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/config/options.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// The name under which the config knows a choice.
std::string chosen(const TrainConfig& config, const char* key) {
  return std::get<std::string>(*find_option(key)->get(config));
}

/// Epsilon at the same delta for the examples of one user: any that differ in so many examples.
Json group_promises(const PrivacyPlan& plan, std::span<const privacy::Phase> phases,
                    const privacy::Answer& one) {
  if (plan.order > 0.0)
    return "not stated: releases that depend on earlier ones are bounded for single examples only";
  Json list = Json::array({{{"examples", 1}, {"epsilon", one.epsilon}}});
  privacy::Question q = question(plan, phases);
  q.looseness = 10.0;
  for (std::uint64_t k = 2; k <= kLargestGroup; k *= 2) {
    q.group = k;
    Json row{{"examples", k}};
    try {
      row["epsilon"] = privacy::Account(q).epsilon(plan.delta - plan.failure).epsilon;
    } catch (const std::domain_error& none) {
      row["epsilon"] = nullptr;
      row["reason"] = none.what();
    }
    list.push_back(std::move(row));
  }
  return list;
}

/// What the features rest on.
Json feature_release(const CertificateFacts& f) {
  const bool pca = f.config.features == Features::pca;
  Json j = {{"what", pca ? "covariance of rows clipped to norm 1, with Gaussian noise"
                         : "channels' means and mean squares, rows of them clipped to norm 1, with "
                           "Gaussian noise"},
            {"sigma", f.plan.feature_noise},
            {"sensitivity", 1.0}};
  if (pca) j["dimensions"] = f.config.feature_dimensions;
  return j;
}

}  // namespace

std::vector<std::string> release_obstacles(const CertificateFacts& f) {
  std::vector<std::string> reasons;
  if (f.config.seed)
    reasons.emplace_back("seed: whoever knows or guesses it can subtract the noise");
  if (f.config.rng == Generator::philox)
    reasons.emplace_back("rng philox: not a cryptographic generator, its noise may be told apart");
  reasons.insert(reasons.end(), f.unsafe.begin(), f.unsafe.end());
  return reasons;
}

std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta) {
  std::vector<std::string> warnings;
  if (delta * training_size > 1.0)
    warnings.push_back(fmt::format(
        "delta {:.3g} is above 1 / {:.0f}, one over the number of training examples: a release of "
        "one example as it is would satisfy it",
        delta, training_size));
  if (epsilon > 20.0)
    warnings.push_back(
        fmt::format("epsilon {:.4g} is above 20: the promise rules out next to nothing", epsilon));
  return warnings;
}

Json begin_certificate(const CertificateFacts& f) {
  Json j;
  j["format"] = "cudp privacy certificate 1";
  const std::vector<std::string> obstacles = release_obstacles(f);
  j["for_release"] = obstacles.empty();
  if (!obstacles.empty()) j["not_for_release"] = obstacles;
  return j;
}

std::uint64_t steps_charged(const PrivacyPlan& plan, const privacy::Ledger& ledger) {
  std::uint64_t steps = 0;
  for (const privacy::Phase& p : ledger.phases())
    if (plan.epoch_releases == 0 || p.q != 1.0 || p.sigma != plan.epoch_noise) steps += p.steps;
  return steps - (plan.size_noise > 0.0 ? 1 : 0) - (plan.feature_noise > 0.0 ? 1 : 0);
}

void add_circumstances(Json& j, const CertificateFacts& f) {
  const BuildInfo build = build_info();
  j["dataset"] = f.dataset;
  if (f.config.features != Features::none) j["features"] = chosen(f.config, "features");
  if (f.plan.feature_noise > 0.0)  // scattering features are each example's own and cost nothing
    j["feature_release"] = feature_release(f);
  if (f.plan.size_noise > 0.0)
    j["size_release"] = {{"noisy_size", static_cast<std::uint64_t>(f.training_size)},
                         {"noise_std", f.plan.size_noise}};
  else
    j["training_examples"] = static_cast<std::uint64_t>(f.training_size);

  j["precision"] = chosen(f.config, "precision");  // of matrix products, as they ran
  j["rng"] = chosen(f.config, "rng");
  j["seeded"] = f.config.seed.has_value();
  j["unsafe_flags"] = f.unsafe;
  if (f.config.allow_weak_privacy) j["allow_weak_privacy"] = true;
  j["warnings"] =
      privacy_warnings(f.training_size, j["epsilon"].get<double>(), j["delta"].get<double>());
  j["hyperparameter_tuning"] = "not counted in epsilon";
  j["test_set"] = f.test_set;
  j["build"] = {{"program", "cudp"},
                {"version", build.version},
                {"commit", build.commit},
                {"compiler", build.compiler},
                {"backend", f.backend}};
}

Json make_certificate(const CertificateFacts& f) {
  const PrivacyPlan& plan = f.plan;
  const BuildInfo build = build_info();
  const std::vector<privacy::Phase> phases = f.ledger.phases();
  const privacy::Answer promise = guarantee(plan, phases);
  Json j = begin_certificate(f);
  // A promise that was made before the first release holds whatever was chosen later: that of a
  // filter, and that of a plan which follows from a noisy number of examples.
  j["epsilon"] = f.ledger.budget()       ? f.ledger.budget()->epsilon
                 : plan.size_noise > 0.0 ? *f.config.epsilon
                                         : promise.epsilon;
  j["delta"] = promise.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["mechanism"] = f.config.method == MethodKind::dpis
                       ? "importance-sampled Gaussian (DPIS), within Poisson-subsampled Gaussians "
                         "admitted by a Renyi filter"
                   : plan.noise.empty()
                       ? "Poisson-subsampled Gaussian (DP-SGD)"
                       : "Poisson-subsampled Gaussians of different noise, fixed beforehand";
  j["method"] = chosen(f.config, "method");
  j["sampling"] = f.config.method == MethodKind::dpis ? "importance" : "poisson";
  j["q"] = plan.sampling_rate();
  j["sampling_threshold"] = plan.sampling_threshold;
  j["sigma"] = plan.noise_multiplier;
  j["C"] = plan.clip_norm;
  j["clipping"] = chosen(f.config, "clipping");
  if (f.config.method == MethodKind::adaclip)
    j["clipped"] = "gradients centred and scaled by numbers of earlier releases";
  if (f.config.method == MethodKind::norm_bound)
    j["C_is"] = "the longest gradient that any input of the public domain has; none is cut";
  j["sensitivity"] = plan.sensitivity;  // C and what rounding can add to it
  j["noise_std"] = plan.noise_multiplier * plan.sensitivity;
  if (!plan.noise.empty()) {
    const auto [least, most] = std::ranges::minmax(plan.noise, {}, &NoiseSpan::scale);
    // sigma and noise_std are those of the first step; steps differ as `releases` lists them
    j["noise_over_time"] = {{"least", least.scale}, {"most", most.scale}};
  }
  j["expected_batch"] = plan.expected_batch;
  j["steps"] = steps_charged(plan, f.ledger);
  j["steps_planned"] = plan.steps;
  j["releases"] = Json::array();
  for (const privacy::Phase& p : phases)
    j["releases"].push_back({{"q", p.q}, {"sigma", p.sigma}, {"steps", p.steps}});

  j["accountant"] = privacy::bound_name(promise);
  j["accountant_version"] = build.version;
  j["epsilon_lower"] = promise.epsilon_lower;  // the truth is not below
  if (promise.interval > 0.0) j["loss_interval"] = promise.interval;
  if (promise.order > 0.0) {
    j["order"] = promise.order;
    j["order_fixed_before"] = plan.order > 0.0;
    j["conversion"] = "Canonne, Kamath, Steinke 2020, Proposition 12";
  }
  j["groups"] = group_promises(plan, phases, promise);
  j["delta_for_rounding"] = plan.failure;  // part of delta: a batch above what sensitivity covers

  if (plan.epoch_releases > 0)
    j["norm_total_noise"] = plan.epoch_noise;  // of the sum of norms that an epoch begins with
  add_circumstances(j, f);
  return j;
}

Json make_refusal_certificate(const CertificateFacts& f) {
  const privacy::Answer promise = guarantee(f.plan, f.ledger.phases());
  Json j = begin_certificate(f);
  j["epsilon"] = promise.epsilon;
  j["delta"] = promise.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["mechanism"] = "Gaussian noise on the number of training examples; nothing was trained";
  j["method"] = chosen(f.config, "method");
  j["releases"] = Json::array({{{"q", 1.0}, {"sigma", f.plan.size_noise}, {"steps", 1}}});
  j["accountant"] = privacy::bound_name(promise);
  j["accountant_version"] = build_info().version;
  add_circumstances(j, f);
  return j;
}

}  // namespace cudp
