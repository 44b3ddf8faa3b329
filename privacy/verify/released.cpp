#include "privacy/verify/released.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/rdp/objective_perturbation.hpp"
#include "privacy/text/json_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/fields.hpp"
#include "privacy/verify/holdout_file.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/release_reasons.hpp"
#include "privacy/verify/release_rules.hpp"
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

// Names of released values in a certificate.
constexpr const char* kSizeName = "size of the training set";
constexpr const char* kDiagonalName = "second moments, on the diagonal";
constexpr const char* kBesideName = "second moments, off the diagonal";
constexpr const char* kChannelsName = "moments of the channels";
constexpr const char* kCountName = "count of the gradients that were not clipped";
constexpr const char* kNormsName = "sum of the norms";
constexpr const char* kNextClipName = "sum of the norms for the next clipping norm";
constexpr const char* kGradientName = "sum of clipped gradients";
constexpr const char* kMinimumName = "minimum of the objective";

class ReleasedChecker {
 public:
  ReleasedChecker(const Evidence& evidence, Bounds& bounds)
      : evidence_(evidence),
        bounds_(bounds),
        json_(privacy::parse_json(evidence.certificate)),
        c_(read_stated_numbers(evidence.certificate)),
        settings_(evidence.settings) {
    if (!evidence.ledger.empty()) charges_ = read_charges(evidence.ledger);
  }

  std::vector<Statement> run() {
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

 private:
  void check_others() {
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

  Statement& begin(std::string name) {
    statements_.push_back({.name = std::move(name), .found = {}, .wrong = {}});
    return statements_.back();
  }
  void wrong(std::string what) { statements_.back().wrong.push_back(std::move(what)); }
  void expect(bool holds, const std::string& where, double expected, double found) {
    if (!holds) wrong(where + ": expected " + number(expected) + ", found " + number(found));
  }
  void expect(const std::string& where, const std::string& expected, const std::string& found) {
    if (expected != found) wrong(where + ": expected " + expected + ", found " + found);
  }
  void add(const std::vector<std::string>& differences) {
    for (const std::string& d : differences) wrong(d);
  }
  void add_findings(std::initializer_list<std::string_view> rules) {
    for (const Finding& f : verdict_.findings)
      if (std::ranges::find(rules, f.rule) != rules.end()) wrong(f.what);
  }
  void check_rules(const char* name, std::initializer_list<std::string_view> rules) {
    begin(name);
    add_findings(rules);
  }

  bool is_method(const char* method) const { return c_.method == method; }
  /// Returns whether the run has steps with noisy sums of batches. It follows from the method and
  /// the status, so that no missing field removes a check.
  bool is_engine() const { return kinds_of(c_).engine && c_.status != "refused"; }
  bool is_of(std::initializer_list<const char*> methods) const {
    return c_.status != "refused" &&
           std::ranges::any_of(methods, [&](const char* m) { return is_method(m); });
  }

  void check_epsilon() {
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

  /// Checks epsilon by the theorem that bounds all releases of objective perturbation together.
  void check_objective() {
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

  void check_metrics() {
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

  void check_ledger() {
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

  /// Checks that the stated sigma is the noise multiplier of the first step, which must be among
  /// the releases.
  void check_sigma() {
    statements_.back().found = c_.noise_std > 0.0 ? "standard deviation " + number(c_.noise_std) +
                                                        " at sensitivity " + number(c_.sensitivity)
                                                  : "stated by each release";
    const auto releases = [&](const privacy::Mechanism& m) {
      return std::ranges::find(c_.releases, m, &privacy::Release::mechanism) != c_.releases.end();
    };
    if (is_engine() && !is_method("dpis") && c_.steps > 0) {
      privacy::Mechanism first = privacy::sampled_gaussian_mechanism(c_.q, c_.sigma);
      if (c_.epoch_steps > 0) first = privacy::AllocatedGaussian{c_.epoch_steps, c_.sigma};
      if (!releases(first)) wrong("sigma: expected a release of " + exact_text(first));
    }
    if (is_method("outpert") && c_.status != "refused") {
      expect(c_.noise_std >= c_.sigma * c_.sensitivity * kProductLowerTolerance,
             "noise_std, at least", c_.sigma * c_.sensitivity, c_.noise_std);
      expect(c_.noise_std <= c_.sigma * c_.sensitivity * kHostUpperTolerance, "noise_std, at most",
             c_.sigma * c_.sensitivity, c_.noise_std);
      if (!releases(privacy::Gaussian{c_.sigma}))
        wrong("sigma: expected a release by " + number(c_.sigma));
    }
    if (c_.size_noise > 0.0 && !releases(privacy::Gaussian{c_.size_noise}))
      wrong("size_release: expected a release by " + number(c_.size_noise));
    if (c_.feature_noise > 0.0 && !releases(privacy::Gaussian{c_.feature_noise}))
      wrong("feature_release: expected a release by " + number(c_.feature_noise));
  }

  // The list of noisy values.

  std::uint64_t paid(double sigma) const {
    std::uint64_t count = 0;
    for (const privacy::Release& r : c_.releases)
      if (r.mechanism == privacy::Mechanism(privacy::Gaussian{sigma})) count += r.count;
    return count;
  }
  /// Removes the values of this name and this noise multiplier from the list of released values.
  /// Returns how many there were.
  std::uint64_t take(std::vector<privacy::NoisyValue>& rows, std::string_view what,
                     double sigma) const {
    std::uint64_t times = 0;
    std::erase_if(rows, [&](const privacy::NoisyValue& l) {
      const double multiplier = l.noise_std / l.sensitivity;
      const bool same = l.name == what && multiplier >= sigma * kProductLowerTolerance &&
                        multiplier <= sigma * kHostUpperTolerance;
      if (same) times += l.times;
      return same;
    });
    return times;
  }
  void expect_times(const std::string& what, std::uint64_t min_times, std::uint64_t max_times,
                    std::uint64_t found) {
    if (found < min_times || found > max_times)
      wrong(what + ": expected " + std::to_string(max_times) +
            (min_times < max_times ? " or " + std::to_string(min_times) + " at least" : "") +
            ", listed " + std::to_string(found));
  }

  void check_releases() {
    Statement& s = begin("releases");
    std::uint64_t mechanisms = 0, values = 0;
    for (const privacy::Release& r : c_.releases) mechanisms += r.count;
    for (const privacy::NoisyValue& l : c_.noisy_values) values += l.times;
    s.found = std::to_string(mechanisms) + ", and " + std::to_string(values) +
              " noisy values in addition to the steps";
    std::vector<privacy::NoisyValue> rows = c_.noisy_values;
    add(rules_);
    if (c_.status == "refused") return;
    check_names();
    // After a lost key, steps are paid for again, but only the values that the run uses are listed.
    if (c_.size_noise > 0.0) expect_size(rows);
    if (c_.feature_noise > 0.0) take_features(rows);
    if (c_.quantile) {
      const std::uint64_t counts =
          take(rows, kCountName, c_.quantile->count_noise_std / c_.quantile->count_sensitivity);
      const std::uint64_t steps = c_.steps - c_.repeated_steps();
      expect_times("noisy counts, one a step", steps, steps, counts);
    }
    std::uint64_t totals = 0;
    if (c_.norm_total_noise > 0.0) {
      totals = paid(c_.norm_total_noise);
      take_totals(rows, totals);
    }
    if (is_method("dp-agd") || is_method("outpert")) {
      for (const privacy::Release& r : c_.releases) {
        const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism);
        if (gaussian == nullptr || gaussian->sigma == c_.size_noise ||
            gaussian->sigma == c_.feature_noise)
          continue;
        expect_times(
            "noisy sums by " + number(gaussian->sigma), r.count - std::min(r.count, c_.repeated),
            r.count,
            take(rows, is_method("dp-agd") ? kGradientName : kMinimumName, gaussian->sigma));
      }
    }
    for (const privacy::NoisyValue& l : rows)
      wrong(l.name + ": listed, and no release pays for it");
    if (is_engine()) {
      const std::uint64_t beside =
          (c_.size_noise > 0.0 ? 1u : 0u) + (c_.feature_noise > 0.0 ? 1u : 0u) + totals;
      if (mechanisms * c_.steps_of_release() != c_.steps + beside * c_.steps_of_release())
        wrong("releases: expected " + std::to_string(c_.steps) + " steps and " +
              std::to_string(beside) + " others, found " + std::to_string(mechanisms));
      // If steps were paid for twice, the budget may end before the last planned step.
      const std::uint64_t made = c_.steps - c_.repeated_steps();
      if (!is_method("dpis") &&
          (made > c_.steps_planned || (made < c_.steps_planned && c_.repeated == 0)))
        wrong("steps: expected " + std::to_string(c_.steps_planned) + " as planned, found " +
              std::to_string(made));
    }
    if (is_method("privgene")) check_selections();
  }

  /// Removes the statistics for features from the list. A covariance matrix is released in two
  /// parts, that of a single column in one.
  void take_features(std::vector<privacy::NoisyValue>& rows) {
    const double sigma = c_.feature_noise;
    if (settings_.text("features") != "pca")
      return expect_times(kChannelsName, 1, 1, take(rows, kChannelsName, sigma));
    const auto diagonal = std::ranges::find(rows, kDiagonalName, &privacy::NoisyValue::name);
    const std::uint64_t beside = diagonal != rows.end() && diagonal->numbers > 1 ? 1 : 0;
    expect_times(kDiagonalName, 1, 1, take(rows, kDiagonalName, sigma));
    expect_times(kBesideName, beside, beside, take(rows, kBesideName, sigma));
  }

  /// Removes DPIS's noisy sums of norms from the list. Each epoch begins with one. If the clipping
  /// norm adapts, each epoch pays for a second one, which the first epoch does not make. After a
  /// lost key only the values that the run uses are listed.
  void take_totals(std::vector<privacy::NoisyValue>& rows, std::uint64_t totals) {
    const bool adapts = settings_.is_on("dpis-adaptive-clip");
    const std::uint64_t epochs = adapts ? totals / 2 : totals;
    const std::uint64_t next_clips = adapts ? epochs - std::min<std::uint64_t>(epochs, 1) : 0;
    const bool all = !c_.lost_a_key();
    expect_times(kNormsName, all ? epochs : 0, epochs, take(rows, kNormsName, c_.norm_total_noise));
    expect_times(kNextClipName, all ? next_clips : 0, all ? next_clips : totals,
                 take(rows, kNextClipName, c_.norm_total_noise));
  }

  /// Checks that each listed value is one that the method releases, on a grid that fits its noise.
  void check_names() {
    // Name, and number of values; 0 if the number depends on the model.
    std::vector<std::pair<std::string, std::uint64_t>> known;
    if (c_.size_noise > 0.0) known.emplace_back(kSizeName, 1);
    if (c_.feature_noise > 0.0)
      for (const char* const name : {kDiagonalName, kBesideName, kChannelsName})
        known.emplace_back(name, 0);
    if (c_.quantile) known.emplace_back(kCountName, 1);
    if (is_method("dpis")) known.emplace_back(kNormsName, 1);
    if (is_method("dpis") && settings_.is_on("dpis-adaptive-clip"))
      known.emplace_back(kNextClipName, 1);
    if (is_method("dp-agd")) known.emplace_back(kGradientName, 0);
    if (is_method("outpert")) known.emplace_back(kMinimumName, 0);
    std::uint64_t diagonal = 0, beside = 0;
    for (const privacy::NoisyValue& l : c_.noisy_values) {
      const auto name = std::ranges::find(known, l.name, &decltype(known)::value_type::first);
      if (name == known.end())
        wrong(l.name + ": expected a value that the method releases, found another");
      else if (name->second != 0 && name->second != l.numbers)
        wrong(l.name + ": expected " + std::to_string(name->second) + " number, listed " +
              std::to_string(l.numbers));
      const double steps = l.noise_std / l.grid;
      if (!(steps >= 0x1p16 && steps < 0x1p40 * kHostUpperTolerance))
        wrong(l.name + ": expected noise of 2^16 to 2^40 times the grid, found " + number(steps));
      if (l.name == kDiagonalName) diagonal = l.numbers;
      if (l.name == kBesideName) beside = l.numbers;
    }
    if (diagonal > 0 && beside != diagonal * (diagonal - 1) / 2)
      wrong("second moments: expected " + std::to_string(diagonal * (diagonal - 1) / 2) +
            " off the diagonal, listed " + std::to_string(beside));
  }

  void expect_size(std::vector<privacy::NoisyValue>& rows) {
    const auto row = std::ranges::find_if(rows, [&](const privacy::NoisyValue& l) {
      return l.name == kSizeName && l.noise_std == c_.size_noise && l.sensitivity == 1.0 &&
             l.numbers == 1;
    });
    if (row == rows.end()) return wrong("noisy size: expected one, listed none");
    expect_times("noisy size", 1, 1, row->times);
    rows.erase(row);
  }

  void check_selections() {
    const double epsilon = json_.at("selection_epsilon").get<double>();
    const auto generations = json_.at("generations").get<std::uint64_t>();
    const auto parents = json_.at("parents").get<std::uint64_t>();
    std::uint64_t count = 0;
    for (const privacy::Release& r : c_.releases)
      if (const auto* choice = std::get_if<privacy::BoundedRange>(&r.mechanism)) {
        expect(choice->epsilon == epsilon, "epsilon of a selection", epsilon, choice->epsilon);
        count += r.count;
      }
    // The last generation selects a single parent.
    const std::uint64_t all = generations > 0 ? (generations - 1) * parents + 1 : 0;
    expect_times("selections", all, all, count);
  }

  // Held-out rows.

  void check_holdout() {
    Statement& s = begin("held out");
    s.is_checked = c_.holdout.has_value() || evidence_.holdout.has_value();
    s.found = "no held-out rows";
    if (c_.holdout) s.found = number(100.0 * c_.holdout->share) + " % of the units";
    if (c_.holdout && c_.holdout->releases > 0)
      s.found += ", figures of epsilon " + number(c_.holdout->epsilon) + " at delta " +
                 number(c_.holdout->delta);
    add(check_holdout_file(evidence_.holdout, c_));
  }

  void check_selection() {
    Statement& s = begin("tuning");
    s.found = std::to_string(c_.tuning->grid.size()) + " candidates, " + number(c_.tuning->mean) +
              " trainings expected";
    add(check_tuning(*c_.tuning, c_, bounds_));
  }

  // Settings.

  std::string stated(const char* pointer) const {
    const Json& value = json_.at(Json::json_pointer(pointer));
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  bool states(const char* pointer) const { return json_.contains(Json::json_pointer(pointer)); }

  void check_settings() {
    Statement& s = begin("settings");
    s.found = "config.toml, method " + c_.method;
    using Pair = std::pair<const char*, const char*>;
    // Which settings the certificate states follows from the method and the status.
    std::vector<Pair> texts = {{"method", "/method"}, {"rng", "/rng"}, {"precision", "/precision"}};
    std::vector<Pair> numbers;
    if (is_engine()) texts.emplace_back("clipping", "/clipping");
    if (is_of({"dp-agd"})) texts.emplace_back("noisy-min", "/selection_noise");
    if (is_of({"dp-agd", "privgene"})) numbers.emplace_back("loss-clip", "/loss_clip");
    if (is_of({"objpert", "outpert"})) {
      numbers.emplace_back("max-norm", "/max_norm");
      numbers.emplace_back("solver-tolerance", "/solver_tolerance");
      if (states("/huber")) numbers.emplace_back("huber", "/huber");  // only the Huber loss has it
    }
    if (is_of({"privgene"})) {
      numbers.emplace_back("candidates", "/candidates");
      numbers.emplace_back("parents", "/parents");
    }
    if (is_of({"dpsgd-quantile"})) {
      numbers.emplace_back("quantile-target", "/quantile/target");
      numbers.emplace_back("quantile-min", "/quantile/C_least");
      numbers.emplace_back("quantile-max", "/quantile/C_most");
    }
    for (const auto& [key, pointer] : texts)
      expect(key, settings_.text(key), states(pointer) ? stated(pointer) : "none");
    if (!settings_.has("epsilon") && !settings_.has("sigma"))
      wrong("settings: expected epsilon or sigma, found neither");
    check_number("delta", c_.training_delta);
    for (const auto& [key, pointer] : numbers) {
      if (states(pointer))
        check_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
      else
        wrong(std::string(key) + ": expected it in the certificate, found none");
    }
    for (const auto& [key, pointer] :
         {Pair{"holdout", "/holdout/share"}, Pair{"holdout-epsilon", "/holdout/epsilon"},
          Pair{"holdout-delta", "/holdout/delta"},
          Pair{"holdout-threshold", "/holdout/threshold"}}) {
      // A run that ended before training states nothing about held-out rows.
      if (c_.status == "refused") break;
      if (states(pointer) != settings_.has(key))
        wrong(std::string(key) +
              ": expected in both the certificate and the settings, found in one");
      else if (states(pointer))
        check_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
    }
    // AdaCliP scales gradients, so that its C is always 1.
    if ((is_engine() && !is_method("adaclip")) || is_of({"dp-agd"})) check_number("clip", c_.clip);
    if (settings_.has("sigma") && is_engine() && !is_method("dpis"))
      check_number("sigma", c_.sigma);
    expect("features", settings_.text("features"), json_.value("features", std::string("none")));
    if ((settings_.has("tuned") && settings_.is_on("tuned")) != c_.tuning.has_value())
      wrong("tuned: expected in both the certificate and the settings, found in one");
    if (settings_.is_on("size-is-public") && c_.size_noise > 0.0)
      wrong("size-is-public: expected no noisy size, found one");
    if (settings_.is_on("size-is-public") && c_.holdout)
      wrong("size-is-public: expected a private size with held-out rows, found a public one");
    check_class_weights();
    if (states("/public_inputs") && json_["public_inputs"].size() != 1)
      wrong("public_inputs: expected the one that the settings name");
    for (const auto& [key, pointer] : {Pair{"fresh-noise-allowed", "/fresh_noise_allowed"},
                                       Pair{"allow-weak-privacy", "/allow_weak_privacy"}})
      if (settings_.has(key))
        expect(key, settings_.text(key), states(pointer) ? stated(pointer) : "false");
    if (is_engine()) check_steps();
  }

  void check_class_weights() {
    std::string stated;
    if (states("/class_weights"))
      for (const Json& weight : json_["class_weights"])
        stated += (stated.empty() ? "" : ",") + number(weight.get<double>());
    std::string set;
    std::string text = settings_.has("class-weights") ? settings_.text("class-weights") : "";
    while (!text.empty()) {
      std::size_t read = 0;
      const double weight = std::stod(text, &read);
      set += (set.empty() ? "" : ",") + number(weight);
      text.erase(0, std::min(read + 1, text.size()));
    }
    expect("class-weights", set, stated);
  }

  void check_number(const std::string& key, double found) {
    const double expected = settings_.number(key);
    expect(expected == found, key, expected, found);
  }

  void check_steps() {
    if (settings_.has("steps")) {
      const double steps = settings_.number("steps");
      expect(steps == static_cast<double>(c_.steps_planned), "steps", steps,
             static_cast<double>(c_.steps_planned));
    } else if (settings_.has("epochs")) {
      const double each = std::fmax(1.0, std::round(c_.size / settings_.number("batch")));
      const double steps = std::round(settings_.number("epochs") * each);
      expect(steps == static_cast<double>(c_.steps_planned), "steps of the epochs", steps,
             static_cast<double>(c_.steps_planned));
    } else {
      wrong("settings: expected steps or epochs, found neither");
    }
  }

  void check_for_release() {
    Statement& s = begin("for release");
    const bool says = json_.at("for_release").get<bool>();
    s.found = says ? "yes" : "no";
    if (json_.contains("not_for_release"))
      for (const Json& reason : json_["not_for_release"])
        s.found += ": " + reason.get<std::string>().substr(0, reason.get<std::string>().find(':'));
    add(check_release_reasons(json_, c_, settings_));
  }

  const Evidence& evidence_;
  Bounds& bounds_;
  Json json_;
  StatedNumbers c_;
  Settings settings_;
  std::optional<Charges> charges_;
  std::vector<std::string> rules_;  ///< differences found by check_release_rules
  bool has_fields_ = false;
  bool has_bounds_ = false;
  Verdict verdict_;
  std::vector<Statement> statements_;
};

}  // namespace

std::vector<std::string> taken_on_trust(const Evidence& evidence) {
  const StatedNumbers c = read_stated_numbers(evidence.certificate);
  const Kinds kinds = kinds_of(c);
  std::vector<std::string> all = {
      "that noise was drawn as stated, once for each release",
      "that the run was made by the named program (build) from the named rows (dataset)",
      "the assumptions, and that no setting was chosen by looking at other runs on the same rows" +
          std::string(c.tuning ? ", other than by the tuning" : "")};
  if (c.tuning)
    all.emplace_back(
        "that the number of trainings and the candidates were drawn as stated, and "
        "nothing of trainings that are not released was published");
  const Settings settings(evidence.settings);
  if (settings.has("init"))
    all.emplace_back("that no row decided the initial weights, whose file the certificate names");
  if (c.status == "finished" && kinds.engine)
    all.emplace_back(
        "how much rounding adds to the bound on a row's part, within what the model's size allows");
  if (c.status == "finished" && c.method == "outpert")
    all.emplace_back("the sensitivity that rounding adds");
  const auto json = privacy::parse_json(evidence.certificate);
  if (settings.has("accept-private-bounds") && settings.is_on("accept-private-bounds") &&
      json.value("unsafe_flags", Json::array()).empty())
    all.emplace_back(
        "that the schema was complete: accept-private-bounds allowed the run to read bounds, "
        "categories and classes from private rows");
  if (c.examples)
    all.emplace_back("that the row count is public, and its value");
  else
    all.emplace_back("the noisy row count itself");
  if (c.method == "dpis")
    all.emplace_back(
        "that rates and noise of DPIS's epochs follow from its noisy sums of norms; their epsilon "
        "is "
        "recomputed");
  if (c.method == "dp-agd")
    all.emplace_back(
        "how often and when DP-AGD measured a gradient again, which follows from its choices");
  if (c.method == "dpsgd-quantile")
    all.emplace_back("the last clipping norm, which follows from noisy counts");
  if (c.lost_a_key())
    all.emplace_back(
        "how often a key was lost, after which steps, and the rows before: that is in the private "
        "ledger");
  if (c.holdout && c.holdout->releases > 0)
    all.emplace_back("the noisy figures of held-out rows themselves");
  if (c.test_set.starts_with("public"))
    all.emplace_back("figures of test rows, and that these are public");
  all.emplace_back(
      "that no row is in the texts that the user wrote (names of the data, columns, classes and "
      "words, layers, the front matter of README.md), nor in pixels of pictures");
  if (evidence.ledger.empty())
    all.emplace_back(
        "that the noise's key was never lost without a second charge, as the owner's private "
        "ledger would show");
  return all;
}

std::vector<Statement> check_released(const Evidence& evidence, Bounds& bounds) {
  try {
    return ReleasedChecker(evidence, bounds).run();
  } catch (const Json::exception& e) {
    throw std::invalid_argument(std::string("certificate: ") + e.what());
  }
}

}  // namespace cudp::verify
