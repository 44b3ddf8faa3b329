#include "privacy/verify/released.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "privacy/rdp/objective_perturbation.hpp"
#include "privacy/text/json_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/fields.hpp"
#include "privacy/verify/holdout_file.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/release_reasons.hpp"
#include "privacy/verify/release_rules.hpp"
#include "privacy/verify/released_checker.hpp"
#include "privacy/verify/rows.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_bounds.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "privacy/verify/statements.hpp"
#include "privacy/verify/tolerances.hpp"
#include "privacy/verify/tuning.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using privacy::number;

}  // namespace

ReleasedChecker::ReleasedChecker(const Evidence& evidence, Bounds& bounds)
    : evidence_(evidence),
      bounds_(bounds),
      json_(privacy::parse_json(evidence.certificate)),
      c_(read_stated_numbers(evidence.certificate)),
      settings_(evidence.settings) {
  if (!evidence.ledger.empty()) charges_ = read_charges(evidence.ledger);
}

std::vector<Statement> ReleasedChecker::run() {
  Statement fields{.name = "fields", .found = std::to_string(json_.size()), .wrong = {}};
  fields.wrong = check_fields(json_, c_, settings_);
  has_fields_ = fields.wrong.empty();
  // If a field is missing or of a wrong type, other checks may throw. Then report the fields
  // alone.
  try {
    check_others();
  } catch (const std::exception&) {
    if (fields.wrong.empty()) throw;
    statements_.clear();
  }
  statements_.push_back(std::move(fields));
  return std::move(statements_);
}

void ReleasedChecker::check_others() {
  rules_ = check_release_rules(json_, c_, settings_);
  // The accountant runs only on releases that the method can have made.
  has_bounds_ = has_fields_ && rules_.empty();
  Bounds none("not computed: the releases are not those of the method");
  verdict_ = check_statements(evidence_, has_bounds_ ? bounds_ : none);
  check_epsilon();
  check_ledger();
  check_metrics();
  check_rules("noise", {"noise", "kinds", "sensitivity"});
  check_sigma();
  check_rules("sampling", {"batch", "divisor"});
  statements_.back().found =
      c_.q > 0.0 ? "rate " + number(c_.q) + ", batch " + number(c_.expected_batch) : c_.sampling;
  check_releases();
  check_holdout();
  if (c_.tuning) check_selection();
  check_settings();
  check_for_release();
}

void ReleasedChecker::add_findings(std::initializer_list<std::string_view> rules) {
  for (const Finding& f : verdict_.findings)
    if (std::ranges::find(rules, f.rule) != rules.end()) wrong(f.what);
}

void ReleasedChecker::check_rules(const char* name, std::initializer_list<std::string_view> rules) {
  begin(name);
  add_findings(rules);
}

void ReleasedChecker::check_epsilon() {
  Statement& s = begin("epsilon");
  s.found = number(c_.epsilon) + " at delta " + number(c_.delta);
  if (c_.holdout || c_.tuning)
    s.found +=
        ", of training " + number(c_.training_epsilon) + " at delta " + number(c_.training_delta);
  if (is_method("objpert") && c_.status != "refused")
    check_objective();
  else if (verdict_.epsilon)
    s.found += ", " + number(*verdict_.epsilon) + " recomputed";
  add_findings({"epsilon"});
  if (has_bounds_)
    add(check_stated_bounds(json_, c_, settings_, charges_ && charges_->ledger.has_fresh_key(),
                            bounds_));
  if (!settings_.has("epsilon")) {
    if (c_.repeated > 0) wrong("settings: expected epsilon with a lost key, found none");
    return;
  }
  const double asked = settings_.number("epsilon");
  expect(c_.training_epsilon <= asked * kHostUpperTolerance,
         "certificate's epsilon, at most the settings'", asked, c_.training_epsilon);
  if (c_.size_noise > 0.0 && is_engine())
    expect(c_.training_epsilon == asked,
           "certificate's epsilon, with a private size equal to the settings'", asked,
           c_.training_epsilon);
}

void ReleasedChecker::check_objective() {
  double others =
      json_.at("output_sensitivity").get<double>() / json_.at("output_noise_std").get<double>();
  for (const privacy::Release& r : c_.releases)
    if (const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism))
      others = std::hypot(others, std::sqrt(static_cast<double>(r.count)) / gaussian->sigma);
  const double delta = privacy::objective_perturbation_delta(
      {.mu = c_.sensitivity / c_.noise_std, .kappa = json_.at("kappa").get<double>()}, others,
      c_.training_epsilon);
  statements_.back().found += ", delta " + number(delta) + " recomputed";
  expect(delta <= c_.training_delta, "certificate's delta at its epsilon, at least", delta,
         c_.training_delta);
  // A run draws the least noise that its budget allows, so a statement of more noise is false.
  expect(delta >= c_.training_delta * (1.0 - 1e-6), "certificate's delta at its epsilon, at most",
         delta, c_.training_delta);
}

void ReleasedChecker::check_metrics() {
  Statement& s = begin("rows");
  s.is_checked = c_.is_finished() && !evidence_.rows.empty();
  if (!s.is_checked) {
    s.found = "metrics.jsonl is missing";
    if (c_.is_finished()) wrong("metrics.jsonl: missing");
    return;
  }
  const std::vector<Row> rows = read_rows(evidence_.rows);
  if (!has_bounds_) {
    s.is_checked = false;
    s.found = "the releases are not those of the method";
    return;
  }
  s.found = std::to_string(rows.size()) + " of metrics.jsonl, their epsilon recomputed";
  s.wrong =
      check_rows(rows, c_, settings_, is_engine(), accountant_options(c_, is_engine()), bounds_);
}

void ReleasedChecker::check_ledger() {
  Statement& s = begin("ledger");
  if (evidence_.ledger.empty()) {
    s.is_checked = false;
    s.found = "no ledger given: it is in the run's private folder";
    return;
  }
  const Charges& charges = *charges_;
  s.found = std::to_string(charges.total) + " releases charged";
  add_findings({"ledger"});
  if (const std::uint64_t repeated = charges.ledger.repeated(); repeated != c_.repeated)
    wrong("releases_repeated: expected " + std::to_string(repeated) + " as charged, found " +
          std::to_string(c_.repeated));
  const std::uint64_t lost = charges.lost.size();
  if (lost > 0) s.found += ", " + std::to_string(lost) + " keys lost";
}

void ReleasedChecker::check_holdout() {
  Statement& s = begin("held out");
  s.is_checked = c_.holdout.has_value() || evidence_.holdout.has_value();
  s.found = "no held-out rows";
  if (c_.holdout) s.found = number(100.0 * c_.holdout->share) + " % of the units";
  if (c_.holdout && c_.holdout->releases > 0)
    s.found += ", figures of epsilon " + number(c_.holdout->epsilon) + " at delta " +
               number(c_.holdout->delta);
  add(check_holdout_file(evidence_.holdout, c_));
}

void ReleasedChecker::check_selection() {
  Statement& s = begin("tuning");
  s.found = std::to_string(c_.tuning->grid.size()) + " candidates, " + number(c_.tuning->mean) +
            " trainings expected";
  add(check_tuning(*c_.tuning, c_, settings_, bounds_));
}

void ReleasedChecker::check_for_release() {
  Statement& s = begin("for release");
  const bool says = json_.at("for_release").get<bool>();
  s.found = says ? "yes" : "no";
  if (json_.contains("not_for_release"))
    for (const Json& reason : json_["not_for_release"])
      s.found += ": " + reason.get<std::string>().substr(0, reason.get<std::string>().find(':'));
  add(check_release_reasons(json_, c_, settings_));
}

std::vector<Statement> check_released(const Evidence& evidence, Bounds& bounds) {
  try {
    return ReleasedChecker(evidence, bounds).run();
  } catch (const Json::exception& e) {
    throw std::invalid_argument(std::string("certificate: ") + e.what());
  }
}

}  // namespace cudp::verify
