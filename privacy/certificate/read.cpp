#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "privacy/certificate/certificate.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/text/json_text.hpp"

namespace cudp::privacy {
namespace {

using Json = nlohmann::json;

// A missing field, or one of another type, is read as 0 or empty. privacy/verify reports it.

double number(const Json& j, const char* name) {
  return j.contains(name) && j[name].is_number() ? j[name].get<double>() : 0.0;
}
std::uint64_t count(const Json& j, const char* name) {
  return j.contains(name) ? j[name].get<std::uint64_t>() : 0;
}
std::string text(const Json& j, const char* name) {
  return j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "";
}
bool flag(const Json& j, const char* name) {
  return j.contains(name) && j[name].is_boolean() && j[name].get<bool>();
}
std::vector<std::string> texts(const Json& j, const char* name) {
  std::vector<std::string> all;
  if (j.contains(name) && j[name].is_array())
    for (const Json& value : j[name])
      if (value.is_string()) all.push_back(value.get<std::string>());
  return all;
}

/// Reads field `name` of the object j: a number, or null if nothing is claimed. Returns NaN for
/// null.
double claimed(const Json& j, const char* name) {
  const Json& value = j.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

/// Reads field `name` of the object j, a text that stands for a value of the enumeration Enum.
/// Returns the one of `values` whose text_of() is this text. Throws std::invalid_argument if there
/// is none.
template <class Enum>
Enum one_of(const Json& j, const char* name, std::initializer_list<Enum> values) {
  std::string expected;
  for (const Enum value : values) {
    if (text(j, name) == text_of(value)) return value;
    expected += (expected.empty() ? "'" : ", '") + std::string(text_of(value)) + "'";
  }
  throw std::invalid_argument(std::string(name) + ": expected one of " + expected + ", found '" +
                              text(j, name) + "'");
}

Release release_of(const Json& j) {
  if (!j.contains("mechanism"))
    return {sampled_gaussian_mechanism(j.at("q").get<double>(), j.at("sigma").get<double>()),
            j.at("steps").get<std::uint64_t>()};
  const auto name = j["mechanism"].get<std::string>();
  if (name == "allocated-gaussian")
    return {AllocatedGaussian{j.at("steps_per_epoch").get<std::uint64_t>(),
                              j.at("sigma").get<double>()},
            j.at("epochs").get<std::uint64_t>()};
  const auto times = j.at("count").get<std::uint64_t>();
  if (name == "gaussian") return {Gaussian{j.at("sigma").get<double>()}, times};
  if (name == "bounded-range") return {BoundedRange{j.at("epsilon").get<double>()}, times};
  if (name == "approximate-dp")
    return {ApproximateDp{j.at("epsilon").get<double>(), number(j, "delta")}, times};
  throw std::invalid_argument(
      "releases: expected mechanism gaussian, allocated-gaussian, bounded-range or "
      "approximate-dp, found '" +
      name + "'");
}

std::vector<Release> releases_of(const Json& j) {
  std::vector<Release> all;
  if (j.contains("releases"))
    for (const Json& r : j["releases"]) all.push_back(release_of(r));
  return all;
}

void check_format(const Json& j) {
  constexpr const char* kFormat = "cudp privacy certificate 2";
  const std::string format = text(j, "format");
  if (format == kFormat) return;
  throw std::invalid_argument("format: expected '" + std::string(kFormat) + "', found '" + format +
                              "': only the version of cudp that made the run reads it");
}

// Promises of the methods.

NoisySums noisy_sums(const Json& j) {
  NoisySums s{.sampling = text(j, "sampling"),
              .q = number(j, "q"),
              .sampling_threshold = count(j, "sampling_threshold"),
              .epoch_steps = count(j, "steps_per_epoch"),
              .sigma = number(j, "sigma"),
              .clip_norm = number(j, "C"),
              .clipping = text(j, "clipping"),
              .clipped = text(j, "clipped"),
              .clip_norm_is = text(j, "C_is"),
              .sensitivity = number(j, "sensitivity"),
              .noise_std = number(j, "noise_std"),
              .grid = j.contains("noise") ? j["noise"].at("grid").get<double>() : 0.0,
              .noise_over_time = {},
              .expected_batch = number(j, "expected_batch"),
              .steps = count(j, "steps"),
              .steps_planned = count(j, "steps_planned"),
              .releases = releases_of(j),
              .accountant = text(j, "accountant"),
              .epsilon_lower = number(j, "epsilon_lower"),
              .loss_interval = number(j, "loss_interval"),
              .order = number(j, "order"),
              .order_fixed_before = flag(j, "order_fixed_before"),
              .delta_for_rounding = number(j, "delta_for_rounding"),
              .norm_total_noise = {},
              .quantile = {}};
  if (j.contains("noise_over_time"))
    s.noise_over_time = {number(j["noise_over_time"], "least"),
                         number(j["noise_over_time"], "most")};
  if (j.contains("norm_total_noise")) s.norm_total_noise = number(j, "norm_total_noise");
  if (j.contains("quantile")) {
    const Json& q = j["quantile"];
    s.quantile = {.target = q.at("target").get<double>(),
                  .min_clip_norm = q.at("C_least").get<double>(),
                  .max_clip_norm = q.at("C_most").get<double>(),
                  .last_clip_norm = static_cast<float>(number(q, "C_last")),
                  .gradient_noise_multiplier = q.at("gradient_noise_multiplier").get<double>(),
                  .count_sensitivity = q.at("count_sensitivity").get<double>(),
                  .count_noise_std = q.at("count_noise_std").get<double>()};
  }
  return s;
}

FilteredReleases filtered_releases(const Json& j) {
  const Json filter = j.value("filter", Json::object());
  return {.sampling_threshold = count(j, "sampling_threshold"),
          .clip_norm = number(j, "C"),
          .loss_clip = number(j, "loss_clip"),
          .sensitivity = number(j, "sensitivity"),
          .loss_sensitivity = number(j, "loss_sensitivity"),
          .selection_noise = text(j, "selection_noise"),
          .real_numbers_only = j.contains("arithmetic"),
          .steps = count(j, "steps"),
          .releases = releases_of(j),
          .rho = number(filter, "rho"),
          .rho_spent = number(filter, "rho_spent"),
          .classical_budget = j.contains("budget_conversion")};
}

MinimisedRisk minimised_risk(const Json& j) {
  MinimisedRisk risk{.regulariser = number(j, "regulariser"),
                     .max_norm = number(j, "max_norm"),
                     .huber = {},
                     .solver_tolerance = number(j, "solver_tolerance")};
  if (j.contains("huber")) risk.huber = number(j, "huber");
  return risk;
}

decltype(Promise::how) mechanism_of(const Json& j, const Certificate& c) {
  const std::string& method = c.promise.method;
  if (c.status == Certificate::Status::refused)
    return CountedExamples{.releases = releases_of(j), .accountant = text(j, "accountant")};
  if (method == "dp-agd") return filtered_releases(j);
  if (method == "objpert")
    return PerturbedObjective{.risk = minimised_risk(j),
                              .noise_std = number(j, "noise_std"),
                              .sensitivity = number(j, "sensitivity"),
                              .kappa = number(j, "kappa"),
                              .output_noise_std = number(j, "output_noise_std"),
                              .output_sensitivity = number(j, "output_sensitivity"),
                              .releases = releases_of(j)};
  if (method == "outpert")
    return PerturbedOutput{.risk = minimised_risk(j),
                           .sigma = number(j, "sigma"),
                           .sensitivity = number(j, "sensitivity"),
                           .noise_std = number(j, "noise_std"),
                           .grid = number(j, "grid"),
                           .releases = releases_of(j)};
  if (method == "privgene")
    return ChosenParents{.loss_clip = number(j, "loss_clip"),
                         .loss_sensitivity = number(j, "loss_sensitivity"),
                         .selection_epsilon = number(j, "selection_epsilon"),
                         .generations = count(j, "generations"),
                         .candidates = count(j, "candidates"),
                         .parents = count(j, "parents"),
                         .releases = releases_of(j)};
  return noisy_sums(j);
}

RunSpending spending_of(const Json& j) {
  RunSpending spending{.run = PlannedRun{}, .failure = number(j, "delta_for_rounding")};
  const std::string spent = text(j, "spent");
  if (spent == "releases")
    spending.run = PlannedRun{releases_of(j)};
  else if (spent == "renyi filter")
    spending.run = RenyiFilteredRun{number(j, "order"), number(j, "divergence")};
  else if (spent == "zcdp filter")
    spending.run = ZcdpFilteredRun{number(j, "rho")};
  else if (spent == "stated")
    spending.run = StatedRun{number(j, "epsilon"), number(j, "delta")};
  else
    throw std::invalid_argument(
        "tuning: expected spending of releases, a renyi filter, a zcdp filter, or stated, found '" +
        spent + "'");
  return spending;
}

Certificate::Tuning tuning_of(const Json& j, const Certificate& c) {
  Certificate::Tuning t{
      .law = {.eta = number(j, "eta"), .gamma = number(j, "gamma"), .cap = count(j, "cap")},
      .mean = number(j, "expected_trainings"),
      .grid = texts(j, "grid"),
      .grid_checksum = text(j, "grid_checksum"),
      .parts = {},
      .by =
          text(j, "bound") == "renyi" ? SelectionEpsilon::By::renyi : SelectionEpsilon::By::profile,
      .order = number(j, "order")};
  if (j.contains("spending"))
    for (const Json& part : j["spending"])
      t.parts.push_back({.of_score = text(part, "of") == "score",
                         .candidates = part.at("candidates").get<std::vector<std::uint64_t>>(),
                         .spending = spending_of(part)});
  if (!j.contains("size_release")) return t;
  const Json& released = j["size_release"];
  t.count = {.sigma = number(released, "noise_std"),
             .epsilon = c.epsilon,
             .delta = c.delta,
             .count_epsilon = number(released, "epsilon"),
             .count_delta = number(released, "delta"),
             .training_epsilon = number(released, "selection_epsilon"),
             .training_delta = number(released, "selection_delta")};
  return t;
}

/// Reads epsilon and delta of the whole run and of the training. j: the certificate's JSON. c: the
/// certificate, whose fields are set.
void read_promises(const Json& j, Certificate& c) {
  const bool has_parts = j.contains("holdout") || j.contains("tuning");
  for (const char* const name : {"training_epsilon", "training_delta"})
    if (j.contains(name) != has_parts)
      throw std::invalid_argument(std::string(name) +
                                  ": expected it with a hold-out or a tuning, and only there");
  c.epsilon = c.promise.epsilon = claimed(j, "epsilon");
  c.delta = c.promise.delta = j.at("delta").get<double>();
  if (!has_parts) return;
  c.promise.epsilon = claimed(j, "training_epsilon");
  c.promise.delta = j.at("training_delta").get<double>();
  if (j.contains("tuning")) c.tuning = tuning_of(j["tuning"], c);
  if (!j.contains("holdout")) return;
  const Json& part = j["holdout"];
  c.holdout = {.share = part.at("share").get<double>(),
               .epsilon = number(part, "epsilon"),
               .delta = number(part, "delta"),
               .sigma = number(part, "sigma"),
               .releases = part.value("releases", std::uint64_t{0})};
  if (part.contains("threshold")) c.holdout->threshold = number(part, "threshold");
}

void read_unit(const Json& j, Certificate& c) {
  if (j.contains("unit") != j.contains("max_rows"))
    throw std::invalid_argument("expected unit and max_rows, or neither, found one");
  if (j.contains("unit"))
    c.unit = {.column = text(j, "unit"), .max_rows = j["max_rows"].get<std::uint64_t>()};
  check_group(c.max_rows());
}

void read_groups(const Json& j, Certificate& c) {
  if (!j.contains("groups")) return;
  c.groups = Groups{.bounds = {}, .not_stated = text(j, "groups")};
  if (!j["groups"].is_array()) return;
  for (const Json& row : j["groups"]) {
    if (!row.is_object()) continue;
    GroupBound bound{.units = 0, .epsilon = {}, .reason = text(row, "reason")};
    const char* const of = c.unit ? "units" : "examples";
    if (row.contains(of) && row[of].is_number_unsigned()) bound.units = row[of];
    if (row.contains("epsilon") && row["epsilon"].is_number()) bound.epsilon = row["epsilon"];
    c.groups->bounds.push_back(std::move(bound));
  }
}

/// Reads the number of examples, and the split of the budget if a noisy number of examples has a
/// part of its own. j: the certificate's JSON. c: the certificate, whose fields are set.
void read_size(const Json& j, Certificate& c) {
  const bool counts = j.contains("size_release") && j["size_release"].contains("epsilon");
  if (counts != j.contains("after_size_release"))
    throw std::invalid_argument(
        "expected an epsilon of size_release and after_size_release, or neither, found one");
  if (!j.contains("size_release")) {
    c.size.value = static_cast<double>(j.at("training_examples").get<std::uint64_t>());
    return;
  }
  const Json& released = j["size_release"];
  c.size = {.value = released.at("noisy_size").get<double>(),
            .noise_std = released.at("noise_std").get<double>()};
  if (!counts) return;
  const Json& after = j["after_size_release"];
  c.split = {.sigma = c.size.noise_std,
             .epsilon = c.promise.epsilon,
             .delta = c.promise.delta,
             .count_epsilon = released.at("epsilon").get<double>(),
             .count_delta = released.at("delta").get<double>(),
             .training_epsilon = after.at("epsilon").get<double>(),
             .training_delta = after.at("delta").get<double>(),
             .group = c.max_rows()};
}

void read_data(const Json& j, Certificate& c) {
  c.dataset = text(j, "dataset");
  if (j.contains("normalise")) c.normalise = text(j["normalise"], "how");
  if (j.contains("features")) c.features = text(j, "features");
  if (j.contains("feature_release")) {
    const Json& release = j["feature_release"];
    c.feature_release = {.sigma = number(release, "sigma"), .dimensions = {}};
    if (release.contains("dimensions") && release["dimensions"].is_number_integer())
      c.feature_release->dimensions = release["dimensions"].get<std::int64_t>();
  }
  if (j.contains("class_weights") && j["class_weights"].is_array())
    for (const Json& weight : j["class_weights"])
      if (weight.is_number()) c.class_weights.push_back(weight.get<double>());
  if (j.contains("noisy_values"))
    for (const Json& r : j["noisy_values"])
      c.noisy_values.push_back({.name = r.at("what").get<std::string>(),
                                .times = r.at("times").get<std::uint64_t>(),
                                .numbers = r.at("numbers").get<std::uint64_t>(),
                                .grid = r.at("grid").get<double>(),
                                .noise_std = r.at("noise_std").get<double>(),
                                .sensitivity = r.at("sensitivity").get<double>()});
}

void read_settings(const Json& j, Certificate& c) {
  using TestSet = Certificate::TestSet;
  if (j.contains("test_set"))
    c.test_set =
        one_of(j, "test_set", {TestSet::none, TestSet::public_rows, TestSet::private_rows});
  c.precision = text(j, "precision");
  c.rng = text(j, "rng");
  c.seeded = flag(j, "seeded");
  c.not_for_release = texts(j, "not_for_release");
  c.unsafe_flags = texts(j, "unsafe_flags");
  c.allow_weak_privacy = flag(j, "allow_weak_privacy");
  c.fresh_noise_allowed = flag(j, "fresh_noise_allowed");
  c.releases_repeated = count(j, "releases_repeated");
  if (j.contains("keys_lost")) c.keys_lost = j["keys_lost"].get<std::uint64_t>();
  c.assumptions = texts(j, "assumptions");
  if (j.contains("public_inputs") && j["public_inputs"].is_array())
    for (const Json& input : j["public_inputs"]) c.initial_weights = read_public_input(input);
  c.warnings = texts(j, "warnings");
  c.pages = static_cast<int>(count(j, "pages"));
  const Json build = j.value("build", Json::object());
  c.build = {.version = text(build, "version"),
             .commit = text(build, "commit"),
             .compiler = text(build, "compiler"),
             .backend = text(build, "backend")};
}

Certificate read(const Json& j) {
  using Status = Certificate::Status;
  Certificate c;
  check_format(j);
  c.status = one_of(j, "status", {Status::finished, Status::not_finished, Status::refused});
  read_promises(j, c);
  read_unit(j, c);
  if (c.tuning && c.tuning->count) c.tuning->count->group = c.max_rows();
  read_groups(j, c);
  c.promise.method = text(j, "method");
  c.promise.mechanism = text(j, "mechanism");
  c.promise.how = mechanism_of(j, c);
  read_data(j, c);
  read_size(j, c);
  read_settings(j, c);
  return c;
}

}  // namespace

Certificate::PublicInput read_public_input(const nlohmann::json& j) {
  return {.file = text(j, "file"),
          .sha256 = text(j, "sha256"),
          .frozen = texts(j, "frozen"),
          .not_counted = text(j, "not_counted")};
}

Certificate read_certificate(std::string_view text) {
  try {
    return read(parse_json(text));
  } catch (const std::exception& e) {
    throw std::invalid_argument(std::string("certificate: ") + e.what());
  }
}

}  // namespace cudp::privacy
