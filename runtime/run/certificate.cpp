#include "runtime/run/certificate.hpp"

#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/accountant.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/methods/releases_before.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Flags and facts that weaken the guarantee.
std::vector<std::string> unsafe_flags(const Experiment& e) {
  std::vector<std::string> flags = e.data.unsafe;
  if (e.config.unsafe_diagnostics) flags.emplace_back("unsafe-diagnostics");
  return flags;
}

enum class Status { finished, not_finished, refused };

const char* text_of(Status status) {
  switch (status) {
    case Status::not_finished:
      return "not finished";
    case Status::refused:
      return "refused";
    default:
      return "finished";
  }
}

/// The first lines: format, and whether the run may be released.
Json begin(const TrainConfig& config, Status status, const std::vector<std::string>& unsafe) {
  std::vector<std::string> obstacles;
  if (status == Status::not_finished)
    obstacles.emplace_back(
        "not finished: this is the plan of a run in progress or cut short; epsilon and delta are "
        "those planned for all of it, and no other epsilon is claimed for what it left so far");
  if (config.seed)
    obstacles.emplace_back("seed: whoever knows or guesses it can subtract the noise");
  if (config.rng == Generator::philox)
    obstacles.emplace_back(
        "rng philox: not a cryptographic generator, its noise may be told apart");
  obstacles.insert(obstacles.end(), unsafe.begin(), unsafe.end());
  Json j;
  j["format"] = "cudp privacy certificate 1";
  j["status"] = text_of(status);
  j["for_release"] = obstacles.empty();
  if (!obstacles.empty()) j["not_for_release"] = obstacles;
  return j;
}

/// What the features rest on.
Json feature_release(const TrainConfig& config, double sigma) {
  const bool pca = config.features == Features::pca;
  Json j = {{"what", pca ? "covariance of rows clipped to norm 1, with Gaussian noise"
                         : "channels' means and mean squares, rows of them clipped to norm 1, with "
                           "Gaussian noise"},
            {"sigma", sigma},
            {"sensitivity", 1.0}};
  if (pca) j["dimensions"] = config.feature_dimensions;
  return j;
}

/// What the host released with Gaussian noise, besides the steps' sums of gradients.
Json noisy_values(const std::vector<Listed>& released) {
  Json list = Json::array();
  for (const Listed& l : released)
    list.push_back({{"what", l.name},
                    {"times", l.times},
                    {"numbers", l.dimension},
                    {"sensitivity", l.sensitivity},
                    {"noise_std", l.noise_std},
                    {"grid", l.grid}});
  return list;
}

std::string test_set_text(const DataSplit& data) {
  if (data.test.size() == 0) return "none";
  return data.test_is_public
             ? "public; read for test_accuracy only, not covered by the guarantee"
             : "not public: what was measured on it is not released, nor covered by the guarantee";
}

/// What does not depend on the method: data, generator, flags, build. Epsilon and delta are there
/// already.
void add_circumstances(Json& j, const Experiment& e, const TrainingSize& size,
                       const std::vector<std::string>& unsafe) {
  const TrainConfig& config = e.config;
  const BuildInfo build = build_info();
  j["dataset"] = e.data.name;
  if (config.features != Features::none) j["features"] = name_of(config.features);
  if (const double sigma = feature_noise(config); sigma > 0.0)
    j["feature_release"] = feature_release(config, sigma);
  if (!size.is_public())
    j["size_release"] = {{"noisy_size", static_cast<std::uint64_t>(size.value)},
                         {"noise_std", size.noise}};
  else
    j["training_examples"] = static_cast<std::uint64_t>(size.value);

  j["precision"] = name_of(config.precision);  // of matrix products, as they ran
  j["rng"] = name_of(config.rng);
  j["seeded"] = config.seed.has_value();
  j["unsafe_flags"] = unsafe;
  if (config.allow_weak_privacy) j["allow_weak_privacy"] = true;
  if (config.fresh_noise_allowed) j["fresh_noise_allowed"] = true;
  j["warnings"] =
      privacy_warnings(size.value, j["epsilon"].get<double>(), j["delta"].get<double>());
  j["hyperparameter_tuning"] = "not counted in epsilon";
  j["test_set"] = test_set_text(e.data);
  j["build"] = {{"program", "cudp"},
                {"version", build.version},
                {"commit", build.commit},
                {"compiler", build.compiler},
                {"backend", e.backend.name}};
}

/// What is said of a run that trains. ledger: what it spends.
Json certificate_of(Status status, const Experiment& e, const TrainingSize& size,
                    const Method& method, const privacy::Ledger& ledger,
                    const std::vector<Listed>& released, std::uint64_t step) {
  std::vector<std::string> unsafe = unsafe_flags(e);
  for (std::string& reason : method.obstacles()) unsafe.push_back(std::move(reason));
  Json j = begin(e.config, status, unsafe);
  method.certify(j, ledger, step);
  if (status == Status::finished)
    if (Json groups = method.groups(ledger); !groups.is_null()) j["groups"] = std::move(groups);
  if (!released.empty()) j["noisy_values"] = noisy_values(released);
  add_circumstances(j, e, size, unsafe);
  return j;
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

Json make_certificate(const Experiment& e, const TrainingSize& size, const Method& method,
                      const privacy::Ledger& ledger, const std::vector<Listed>& released,
                      std::uint64_t step) {
  return certificate_of(Status::finished, e, size, method, ledger, released, step);
}

Json make_plan_certificate(const Experiment& e, const TrainingSize& size, const Method& method,
                           const privacy::Ledger& ledger, const std::vector<Listed>& released,
                           std::uint64_t step, std::uint64_t last_step) {
  return certificate_of(Status::not_finished, e, size, method, method.planned(ledger, last_step),
                        released, step);
}

Json make_refusal_certificate(const Experiment& e, const TrainingSize& size,
                              const privacy::Ledger& ledger) {
  const std::vector<std::string> unsafe = unsafe_flags(e);
  const privacy::PrivacyBound bound =
      privacy::Accountant({.releases = ledger.releases()}).epsilon(*e.config.delta);
  Json j = begin(e.config, Status::refused, unsafe);
  j["epsilon"] = bound.epsilon;
  j["delta"] = bound.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["mechanism"] = "Gaussian noise on the number of training examples; nothing was trained";
  j["method"] = e.config.method;
  j["releases"] = Json::array({{{"q", 1.0}, {"sigma", size.noise}, {"steps", 1}}});
  j["accountant"] = privacy::bound_name(bound);
  j["accountant_version"] = build_info().version;
  add_circumstances(j, e, size, unsafe);
  return j;
}

}  // namespace cudp
