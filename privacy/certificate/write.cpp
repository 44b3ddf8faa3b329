#include <variant>

#include <nlohmann/json.hpp>

#include "privacy/certificate/certificate.hpp"
#include "privacy/mechanism/mechanism.hpp"

// The order of the lines is part of the format.

namespace cudp::privacy {
namespace {

using Json = nlohmann::ordered_json;
using Releases = std::vector<Release>;

/// Texts that describe neighbouring data sets in a certificate. kNeighbours: if the unit of privacy
/// is one example. kUnitNeighbours: if it is all rows with the same text in a column.
constexpr const char* kNeighbours = "add or remove one training example";
constexpr const char* kUnitNeighbours =
    "add or remove one unit: all rows with one text in the column 'unit', of which the first "
    "max_rows are used";
/// Text of the field `conversion`: the source of the formula that converts Renyi divergences or
/// zCDP to epsilon.
constexpr const char* kConversion = "Canonne, Kamath, Steinke 2020, Proposition 12";
/// Text of the field `arithmetic`, for mechanisms whose proof does not cover the rounding of
/// numbers.
constexpr const char* kRealNumbers = "proved for real numbers only";

/// Returns the releases as JSON for sampled Gaussian sums: number of steps, sampling rate and noise
/// of each entry; or number of epochs, for random allocation.
Json sampled_json(const Releases& releases) {
  Json list = Json::array();
  for (const Release& release : releases) {
    double q = 1.0;
    double sigma = 0.0;
    if (const auto* epoch = std::get_if<AllocatedGaussian>(&release.mechanism)) {
      list.push_back({{"mechanism", name(release.mechanism)},
                      {"steps_per_epoch", epoch->steps},
                      {"sigma", epoch->sigma},
                      {"epochs", release.count}});
      continue;
    }
    if (const auto* sampled = std::get_if<PoissonGaussian>(&release.mechanism)) {
      q = sampled->q;
      sigma = sampled->sigma;
    } else {
      sigma = std::get<Gaussian>(release.mechanism).sigma;
    }
    list.push_back({{"q", q}, {"sigma", sigma}, {"steps", release.count}});
  }
  return list;
}

/// Returns the releases as JSON, for any mechanism: its name and its own fields.
Json releases_json(const Releases& releases) {
  Json list = Json::array();
  for (const Release& release : releases) {
    Json j{{"mechanism", name(release.mechanism)}};
    if (const auto* gaussian = std::get_if<Gaussian>(&release.mechanism))
      j["sigma"] = gaussian->sigma;
    if (const auto* selection = std::get_if<BoundedRange>(&release.mechanism))
      j["epsilon"] = selection->epsilon;
    if (const auto* stated = std::get_if<ApproximateDp>(&release.mechanism)) {
      j["epsilon"] = stated->epsilon;
      if (stated->delta > 0.0) j["delta"] = stated->delta;
    }
    j["count"] = release.count;
    list.push_back(std::move(j));
  }
  return list;
}

/// Writes the fields that describe the training's mechanism (Promise::how) to the certificate's
/// JSON. A visitor of the variant, with an overload for each kind of mechanism.
struct WriteMechanism {
  Json& j;
  const Promise& promise;
  const std::string& version;
  const char* neighbours;

  void operator()(const NoisySums& s) const {
    j.update({{"neighbouring_relation", neighbours},
              {"mechanism", promise.mechanism},
              {"method", promise.method},
              {"sampling", s.sampling},
              {"q", s.q},
              {"sampling_threshold", s.sampling_threshold}});
    if (s.epoch_steps > 0) j["steps_per_epoch"] = s.epoch_steps;
    j.update({{"sigma", s.sigma}, {"C", s.clip_norm}, {"clipping", s.clipping}});
    if (!s.clipped.empty()) j["clipped"] = s.clipped;
    if (!s.clip_norm_is.empty()) j["C_is"] = s.clip_norm_is;
    j.update({{"sensitivity", s.sensitivity},
              {"noise_std", s.noise_std},
              {"noise",
               {{"kind", "rounded gaussian"}, {"grid", s.grid}, {"proof", "privacy/README.md"}}}});
    if (s.noise_over_time)
      j["noise_over_time"] = {{"least", s.noise_over_time->min}, {"most", s.noise_over_time->max}};
    j.update({{"expected_batch", s.expected_batch},
              {"steps", s.steps},
              {"steps_planned", s.steps_planned},
              {"releases", sampled_json(s.releases)},
              {"accountant", s.accountant},
              {"accountant_version", version},
              {"epsilon_lower", s.epsilon_lower}});
    if (s.loss_interval > 0.0) j["loss_interval"] = s.loss_interval;
    if (s.order > 0.0)
      j.update({{"order", s.order},
                {"order_fixed_before", s.order_fixed_before},
                {"conversion", kConversion}});
    j["delta_for_rounding"] = s.delta_for_rounding;
    if (s.norm_total_noise) j["norm_total_noise"] = *s.norm_total_noise;
    if (s.quantile) add(*s.quantile);
  }

  void operator()(const FilteredReleases& s) const {
    j.update({{"neighbouring_relation", neighbours},
              {"mechanism", promise.mechanism},
              {"method", promise.method},
              {"sampling",
               s.sampling_threshold > 0 ? "poisson, counted as all examples" : "all examples"}});
    if (s.sampling_threshold > 0) j["sampling_threshold"] = s.sampling_threshold;
    j.update({{"C", s.clip_norm},
              {"loss_clip", s.loss_clip},
              {"sensitivity", s.sensitivity},
              {"loss_sensitivity", s.loss_sensitivity},
              {"selection_noise", s.selection_noise}});
    if (s.real_numbers_only) j["arithmetic"] = kRealNumbers;
    j.update({{"steps", s.steps},
              {"releases", releases_json(s.releases)},
              {"filter",
               {{"kind", "zcdp"},
                {"rho", s.rho},
                {"rho_spent", s.rho_spent},
                {"theorem", "Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1"}}},
              {"accountant", "zcdp"},
              {"accountant_version", version},
              {"conversion", kConversion}});
    if (s.classical_budget) j["budget_conversion"] = "Bun, Steinke 2016, Proposition 1.3";
  }

  void operator()(const PerturbedObjective& s) const {
    begin_linear();
    j.update({{"noise_std", s.noise_std},
              {"sensitivity", s.sensitivity},
              {"kappa", s.kappa},
              {"output_noise_std", s.output_noise_std},
              {"output_sensitivity", s.output_sensitivity}});
    add(s.risk);
    j.update({{"arithmetic", kRealNumbers},
              {"accountant", "objective perturbation"},
              {"accounted",
               "epsilon and delta are those of all releases together, the noisy size among them"}});
    end_linear(s.releases);
  }

  void operator()(const PerturbedOutput& s) const {
    begin_linear();
    j.update({{"sigma", s.sigma},
              {"sensitivity", s.sensitivity},
              {"noise_std", s.noise_std},
              {"grid", s.grid}});
    add(s.risk);
    j["accountant"] = "gaussian";
    end_linear(s.releases);
  }

  void operator()(const ChosenParents& s) const {
    begin_linear();
    j.update({{"loss_clip", s.loss_clip},
              {"loss_sensitivity", s.loss_sensitivity},
              {"selection_epsilon", s.selection_epsilon},
              {"generations", s.generations},
              {"candidates", s.candidates},
              {"parents", s.parents},
              {"accountant", "zcdp"},
              {"conversion", kConversion}});
    end_linear(s.releases);
  }

  void operator()(const CountedExamples& s) const {
    j.update({{"neighbouring_relation", neighbours},
              {"mechanism", promise.mechanism},
              {"method", promise.method},
              {"releases", sampled_json(s.releases)},
              {"accountant", s.accountant},
              {"accountant_version", version}});
  }

  void operator()(const NoPrivacy& s) const {
    j.update({{"mechanism", promise.mechanism},
              {"method", promise.method},
              {"expected_batch", s.expected_batch},
              {"steps", s.steps}});
  }

 private:
  void begin_linear() const {
    j.update({{"neighbouring_relation", neighbours},
              {"method", promise.method},
              {"sampling", "all examples"},
              {"mechanism", promise.mechanism}});
  }
  void end_linear(const Releases& releases) const {
    j.update({{"accountant_version", version}, {"releases", releases_json(releases)}});
  }

  void add(const MinimisedRisk& risk) const {
    j.update({{"regulariser", risk.regulariser}, {"max_norm", risk.max_norm}});
    if (risk.huber) j["huber"] = *risk.huber;
    j["solver_tolerance"] = risk.solver_tolerance;
  }

  void add(const NoisySums::Quantile& q) const {
    j["quantile"] = {{"target", q.target},
                     {"C_least", q.min_clip_norm},
                     {"C_most", q.max_clip_norm},
                     {"C_last", q.last_clip_norm},
                     {"gradient_noise_multiplier", q.gradient_noise_multiplier},
                     {"count_sensitivity", q.count_sensitivity},
                     {"count_noise_std", q.count_noise_std}};
  }
};

Json groups_json(const Groups& groups, const char* of) {
  if (!groups.not_stated.empty()) return groups.not_stated;
  Json list = Json::array();
  for (const GroupBound& bound : groups.bounds) {
    Json row{{of, bound.units}, {"epsilon", nullptr}};
    if (bound.epsilon)
      row["epsilon"] = *bound.epsilon;
    else
      row["reason"] = bound.reason;
    list.push_back(std::move(row));
  }
  return list;
}

Json noisy_values_json(const std::vector<NoisyValue>& released) {
  Json list = Json::array();
  for (const NoisyValue& l : released)
    list.push_back({{"what", l.name},
                    {"times", l.times},
                    {"numbers", l.numbers},
                    {"sensitivity", l.sensitivity},
                    {"noise_std", l.noise_std},
                    {"grid", l.grid}});
  return list;
}

Json feature_release_json(const Certificate::FeatureRelease& release) {
  const bool pca = release.dimensions.has_value();
  Json j = {{"what", pca ? "covariance of rows clipped to norm 1, with Gaussian noise"
                         : "channels' means and mean squares, rows of them clipped to norm 1, with "
                           "Gaussian noise"},
            {"sigma", release.sigma},
            {"sensitivity", 1.0}};
  if (pca) j["dimensions"] = *release.dimensions;
  return j;
}

/// Returns the JSON fields that a certificate has only if units were held out: the guarantee of the
/// training alone, and an object with that of the test metrics of the held-out units.
Json parts_json(const Certificate::Holdout& held, const Promise& promise) {
  Json part{{"share", held.share},
            {"of", "units, each by a secret coin of its own; the others are trained on"}};
  if (held.releases > 0)
    part.update({{"epsilon", held.epsilon},
                 {"delta", held.delta},
                 {"sigma", held.sigma},
                 {"sensitivity", 1.0},
                 {"releases", held.releases},
                 {"mechanism",
                  "noisy figures of the held-out rows, once, and the noisy number of "
                  "training examples"}});
  if (held.threshold) part["threshold"] = *held.threshold;
  return {
      {"training_epsilon", promise.epsilon}, {"training_delta", promise.delta}, {"holdout", part}};
}

Json spending_json(const RunSpending& spending) {
  Json j;
  if (const auto* planned = std::get_if<PlannedRun>(&spending.run)) {
    Json list = Json::array();
    for (const Release& release : planned->releases) {
      if (const auto* sampled = std::get_if<PoissonGaussian>(&release.mechanism))
        list.push_back({{"q", sampled->q}, {"sigma", sampled->sigma}, {"steps", release.count}});
      else
        list.push_back(releases_json({release}).front());
    }
    j = {{"spent", "releases"}, {"releases", list}};
  } else if (const auto* renyi = std::get_if<RenyiFilteredRun>(&spending.run)) {
    j = {{"spent", "renyi filter"}, {"order", renyi->order}, {"divergence", renyi->divergence}};
  } else if (const auto* zcdp = std::get_if<ZcdpFilteredRun>(&spending.run)) {
    j = {{"spent", "zcdp filter"}, {"rho", zcdp->rho}};
  } else {
    const auto& stated = std::get<StatedRun>(spending.run);
    j = {{"spent", "stated"}, {"epsilon", stated.epsilon}, {"delta", stated.delta}};
  }
  if (spending.failure > 0.0) j["delta_for_rounding"] = spending.failure;
  return j;
}

Json tuning_json(const Certificate::Tuning& t) {
  Json parts = Json::array();
  for (const Certificate::Tuning::Part& part : t.parts) {
    Json j{{"of", part.of_score ? "score" : "training"}, {"candidates", part.candidates}};
    j.update(spending_json(part.spending));
    parts.push_back(std::move(j));
  }
  Json j{{"what", kSelection},
         {"distribution", kStopping},
         {"eta", t.law.eta},
         {"gamma", t.law.gamma},
         {"cap", t.law.cap},
         {"expected_trainings", t.mean},
         {"grid", t.grid},
         {"grid_checksum", t.grid_checksum},
         {"spending", parts},
         {"bound", t.by == SelectionEpsilon::By::profile ? "profiles" : "renyi"}};
  if (t.by == SelectionEpsilon::By::renyi) j["order"] = t.order;
  if (t.count)
    j["size_release"] = {{"what", kCountedOnce},
                         {"noise_std", t.count->sigma},
                         {"epsilon", t.count->count_epsilon},
                         {"delta", t.count->count_delta},
                         {"selection_epsilon", t.count->training_epsilon},
                         {"selection_delta", t.count->training_delta}};
  j["assumption"] = kTimeOfSelection;
  return j;
}

}  // namespace

Json to_json(const Certificate::PublicInput& input) {
  Json j{{"what", "initial weights"}, {"file", input.file}, {"sha256", input.sha256}};
  if (!input.frozen.empty()) j["frozen"] = input.frozen;
  j["guarantee"] = "does not cover the file: that no training example decided it is an assumption";
  if (!input.not_counted.empty()) j["not_counted"] = input.not_counted;
  return j;
}

Json to_json(const Certificate& c) {
  Json j{{"format", "cudp privacy certificate 2"},
         {"status", text_of(c.status)},
         {"for_release", c.for_release()}};
  if (!c.for_release()) j["not_for_release"] = c.not_for_release;
  j["epsilon"] = c.epsilon;  // an infinite number becomes null
  j["delta"] = c.delta;
  if (c.holdout) j.update(parts_json(*c.holdout, c.promise));
  if (c.tuning)
    j.update({{"training_epsilon", c.promise.epsilon},
              {"training_delta", c.promise.delta},
              {"tuning", tuning_json(*c.tuning)}});
  if (c.unit) j.update({{"unit", c.unit->column}, {"max_rows", c.unit->max_rows}});
  std::visit(WriteMechanism{j, c.promise, c.build.version, c.unit ? kUnitNeighbours : kNeighbours},
             c.promise.how);
  if (c.groups) j["groups"] = groups_json(*c.groups, c.unit ? "units" : "examples");
  if (!c.noisy_values.empty()) j["noisy_values"] = noisy_values_json(c.noisy_values);
  j["dataset"] = c.dataset;
  if (c.normalise != "none")
    j["normalise"] = {{"how", c.normalise}, {"of", "each example's numbers by themselves"}};
  if (c.features != "none") j["features"] = c.features;
  if (c.feature_release) j["feature_release"] = feature_release_json(*c.feature_release);
  if (!c.class_weights.empty()) j["class_weights"] = c.class_weights;
  if (c.size.is_public())
    j["training_examples"] = static_cast<std::uint64_t>(c.size.value);
  else
    j["size_release"] = {{"noisy_size", static_cast<std::uint64_t>(c.size.value)},
                         {"noise_std", c.size.noise_std}};
  if (c.split) {
    j["size_release"].update(
        {{"epsilon", c.split->count_epsilon}, {"delta", c.split->count_delta}});
    j["after_size_release"] = {
        {"epsilon", c.split->training_epsilon},
        {"delta", c.split->training_delta},
        {"composition", "basic: whatever follows from the noisy size, both parts add up"}};
  }
  j.update({{"precision", c.precision},
            {"rng", c.rng},
            {"seeded", c.seeded},
            {"unsafe_flags", c.unsafe_flags}});
  if (!c.assumptions.empty()) j["assumptions"] = c.assumptions;
  if (c.initial_weights) j["public_inputs"] = Json::array({to_json(*c.initial_weights)});
  if (c.allow_weak_privacy) j["allow_weak_privacy"] = true;
  if (c.fresh_noise_allowed) j["fresh_noise_allowed"] = true;
  if (c.keys_lost.value_or(0) > 0)
    j.update({{"keys_lost", *c.keys_lost}, {"releases_repeated", c.releases_repeated}});
  j.update({{"warnings", c.warnings},
            {"hyperparameter_tuning",
             // A tuning that has not ended has the method "tune" and no `tuning` (the spending of
             // each candidate).
             c.tuning || c.promise.method == "tune" ? kCounted : kNotCounted},
            {"test_set", text_of(c.test_set)}});
  if (c.pages > 0) j["pages"] = c.pages;
  j.update({{"build",
             {{"program", "cudp"},
              {"version", c.build.version},
              {"commit", c.build.commit},
              {"compiler", c.build.compiler},
              {"backend", c.build.backend}}}});
  return j;
}

std::string to_text(const Certificate& certificate) { return to_json(certificate).dump(2) + "\n"; }

}  // namespace cudp::privacy
