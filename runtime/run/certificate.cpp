#include "runtime/run/certificate.hpp"

#include "runtime/build_info.hpp"
#include "runtime/config/options.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// The name under which the config knows a choice.
std::string chosen(const TrainConfig& config, const char* key) {
  return std::get<std::string>(*find_option(key)->get(config));
}

}  // namespace

std::uint64_t steps_charged(const PrivacyPlan& plan, const privacy::Ledger& ledger) {
  std::uint64_t steps = 0;
  for (const privacy::Phase& p : ledger.phases()) steps += p.steps;
  return plan.size_noise > 0.0 ? steps - 1 : steps;
}

Json make_certificate(const CertificateFacts& f) {
  const PrivacyPlan& plan = f.plan;
  const BuildInfo build = build_info();
  const privacy::Guarantee promise = guarantee(plan, f.ledger.phases());
  const bool seeded = f.config.seed.has_value();

  Json j;
  j["format"] = "cudp privacy certificate 1";
  j["for_release"] = !seeded && f.unsafe.empty();
  j["epsilon"] = promise.epsilon;
  j["delta"] = promise.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["mechanism"] = "Poisson-subsampled Gaussian (DP-SGD)";
  j["method"] = chosen(f.config, "method");
  j["sampling"] = "poisson";
  j["q"] = plan.sampling_rate();
  j["sampling_threshold"] = plan.sampling_threshold;
  j["sigma"] = plan.noise_multiplier;
  j["C"] = plan.clip_norm;
  j["clipping"] = chosen(f.config, "clipping");
  j["sensitivity"] = plan.sensitivity;  // C and what rounding can add to it
  j["noise_std"] = plan.noise_std();
  j["expected_batch"] = plan.expected_batch;
  j["steps"] = steps_charged(plan, f.ledger);
  j["steps_planned"] = plan.steps;
  j["releases"] = Json::array();
  for (const privacy::Phase& p : f.ledger.phases())
    j["releases"].push_back({{"q", p.q}, {"sigma", p.sigma}, {"steps", p.steps}});

  j["accountant"] = "rdp";
  j["accountant_version"] = build.version;
  j["order"] = promise.order;
  j["order_fixed_before"] = plan.order > 0.0;
  j["conversion"] = "Canonne, Kamath, Steinke 2020, Proposition 12";
  j["delta_for_rounding"] = plan.failure;  // part of delta: a batch above what sensitivity covers

  j["dataset"] = f.dataset;
  if (f.config.features != Features::none)  // of each example by itself, so they cost nothing
    j["features"] = chosen(f.config, "features");
  if (plan.size_noise > 0.0)
    j["size_release"] = {{"noisy_size", f.training_size}, {"noise_std", plan.size_noise}};
  else
    j["training_examples"] = static_cast<std::uint64_t>(f.training_size);

  j["rng"] = chosen(f.config, "rng");
  j["seeded"] = seeded;
  j["unsafe_flags"] = f.unsafe;
  j["hyperparameter_tuning"] = "not counted in epsilon";
  j["test_set"] = "read for test_accuracy only; not covered by the promise";
  j["build"] = {{"program", "cudp"},
                {"version", build.version},
                {"commit", build.commit},
                {"compiler", build.compiler},
                {"backend", f.backend}};
  return j;
}

}  // namespace cudp
