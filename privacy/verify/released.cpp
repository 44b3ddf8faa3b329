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
#include "privacy/text/number.hpp"
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/rows.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using privacy::number;

/// The share that the host may add to a standard deviation, and the rounding of the division.
constexpr double kHostAbove = 1.0 + 1e-9;
constexpr double kProduct = 1.0 - 0x1p-51;

class Holder {
 public:
  explicit Holder(const Evidence& evidence)
      : evidence_(evidence),
        json_(Json::parse(evidence.certificate)),
        c_(read_certificate(evidence.certificate)),
        settings_(evidence.settings),
        verdict_(check_statements(evidence)) {}

  std::vector<Statement> run() {
    hold_epsilon();
    hold_ledger();
    hold_metrics();
    hold_rules("noise", {"noise", "kinds"});
    hold_sigma();
    hold_rules("sampling", {"batch", "divisor"});
    statements_.back().found =
        c_.q > 0.0 ? "rate " + number(c_.q) + ", batch " + number(c_.expected_batch) : c_.sampling;
    hold_releases();
    hold_settings();
    hold_for_release();
    return std::move(statements_);
  }

 private:
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
  void add_findings(std::initializer_list<std::string_view> rules) {
    for (const Finding& f : verdict_.findings)
      if (std::ranges::find(rules, f.rule) != rules.end()) wrong(f.what);
  }
  void hold_rules(const char* name, std::initializer_list<std::string_view> rules) {
    begin(name);
    add_findings(rules);
  }

  bool is(const char* method) const { return c_.method == method; }
  /// Whether the method has numbered steps of Poisson batches.
  bool is_engine() const { return json_.contains("steps_planned"); }

  void hold_epsilon() {
    Statement& s = begin("epsilon");
    s.found = number(c_.epsilon) + " at delta " + number(c_.delta);
    if (c_.holdout)
      s.found +=
          ", of training " + number(c_.training_epsilon) + " at delta " + number(c_.training_delta);
    if (is("objpert") && c_.status != "refused")
      hold_objective();
    else if (verdict_.epsilon)
      s.found += ", " + number(*verdict_.epsilon) + " recomputed";
    add_findings({"epsilon"});
    if (!settings_.has("epsilon")) return;
    const double asked = settings_.number("epsilon");
    expect(c_.training_epsilon <= asked * kHostAbove, "certificate, at most the settings'", asked,
           c_.training_epsilon);
    if (c_.size_noise > 0.0 && is_engine())
      expect(c_.training_epsilon == asked, "certificate, of a private size the settings'", asked,
             c_.training_epsilon);
  }

  /// Holds epsilon against the theorem for all that was released together.
  void hold_objective() {
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
  }

  void hold_metrics() {
    Statement& s = begin("rows");
    s.looked_at = c_.is_finished() && !evidence_.rows.empty();
    if (!s.looked_at) {
      s.found = "metrics.jsonl is not there";
      return;
    }
    const std::vector<Row> rows = read_rows(evidence_.rows);
    s.found = std::to_string(rows.size()) + " of metrics.jsonl, their epsilon recomputed";
    std::optional<Charges> charges;
    if (!evidence_.ledger.empty()) charges = read_charges(evidence_.ledger);
    s.wrong = hold_rows(rows, c_, charges ? &*charges : nullptr, is_engine(),
                        accountant_options(c_, is_engine()));
  }

  void hold_ledger() {
    Statement& s = begin("ledger");
    if (evidence_.ledger.empty()) {
      s.looked_at = false;
      s.found = "not there: it is in the run's private folder";
      return;
    }
    const Charges charges = read_charges(evidence_.ledger);
    s.found = std::to_string(charges.total) + " releases charged";
    add_findings({"ledger"});
    if (const std::uint64_t repeated = charges.ledger.repeated(); repeated != c_.repeated)
      wrong("releases_repeated: expected " + std::to_string(repeated) + " as charged, found " +
            std::to_string(c_.repeated));
    const std::uint64_t lost = charges.lost.size();
    if (lost > 0) s.found += ", " + std::to_string(lost) + " keys lost";
  }

  /// The stated sigma is that of the first step, which is among the releases.
  void hold_sigma() {
    statements_.back().found = c_.noise_std > 0.0 ? "standard deviation " + number(c_.noise_std) +
                                                        " at sensitivity " + number(c_.sensitivity)
                                                  : "as its releases list it";
    const auto releases = [&](const privacy::Mechanism& m) {
      return std::ranges::find(c_.releases, m, &privacy::Release::mechanism) != c_.releases.end();
    };
    if (is_engine() && !is("dpis") && c_.steps > 0) {
      const privacy::Mechanism first = privacy::sampled_gaussian_mechanism(c_.q, c_.sigma);
      if (!releases(first)) wrong("sigma: expected a release of " + exact_text(first));
    }
    if (is("outpert") && c_.status != "refused") {
      expect(c_.noise_std >= c_.sigma * c_.sensitivity * kProduct, "noise_std, at least",
             c_.sigma * c_.sensitivity, c_.noise_std);
      expect(c_.noise_std <= c_.sigma * c_.sensitivity * kHostAbove, "noise_std, at most",
             c_.sigma * c_.sensitivity, c_.noise_std);
      if (!releases(privacy::Gaussian{c_.sigma}))
        wrong("sigma: expected a release by " + number(c_.sigma));
    }
    if (c_.size_noise > 0.0 && !releases(privacy::Gaussian{c_.size_noise}))
      wrong("size_release: expected a release by " + number(c_.size_noise));
    if (c_.feature_noise > 0.0 && !releases(privacy::Gaussian{c_.feature_noise}))
      wrong("feature_release: expected a release by " + number(c_.feature_noise));
  }

  // What is listed.

  std::uint64_t paid(double sigma) const {
    std::uint64_t count = 0;
    for (const privacy::Release& r : c_.releases)
      if (r.mechanism == privacy::Mechanism(privacy::Gaussian{sigma})) count += r.count;
    return count;
  }
  /// Takes the rows of this noise over sensitivity out of the list.
  std::uint64_t take(std::vector<Certificate::Listed>& rows, double sigma) const {
    std::uint64_t times = 0;
    std::erase_if(rows, [&](const Certificate::Listed& l) {
      const double multiplier = l.noise_std / l.sensitivity;
      const bool same = multiplier >= sigma * kProduct && multiplier <= sigma * kHostAbove;
      if (same) times += l.times;
      return same;
    });
    return times;
  }
  void expect_times(const std::string& what, std::uint64_t min_times, std::uint64_t max_times,
                    std::uint64_t found) {
    if (found < min_times || found > max_times)
      wrong(what + ": expected " + std::to_string(max_times) + ", listed " + std::to_string(found));
  }

  void hold_releases() {
    Statement& s = begin("releases");
    std::uint64_t mechanisms = 0, values = 0;
    for (const privacy::Release& r : c_.releases) mechanisms += r.count;
    for (const Certificate::Listed& l : c_.noisy_values) values += l.times;
    s.found = std::to_string(mechanisms) + ", and " + std::to_string(values) +
              " of noisy values beside the steps";
    std::vector<Certificate::Listed> rows = c_.noisy_values;
    if (c_.status == "refused") return;
    // With a key lost steps are paid for again, and only what the run rests on is listed.
    if (c_.size_noise > 0.0) expect_size(rows);
    if (c_.feature_noise > 0.0)
      // A covariance is in two parts, but of a single column.
      expect_times("noisy values for features", 1, 2, take(rows, c_.feature_noise));
    if (c_.quantile) {
      const std::uint64_t counts =
          take(rows, c_.quantile->count_noise / c_.quantile->count_sensitivity);
      const std::uint64_t steps = c_.steps - std::min(c_.steps, c_.repeated);
      expect_times("noisy counts, one a step", steps, steps, counts);
    }
    std::uint64_t totals = 0;
    if (c_.norm_total_noise > 0.0) {
      totals = paid(c_.norm_total_noise);
      // The first epoch may have no clipping norm to choose, and pays for it.
      const std::uint64_t min_times = totals - std::min(totals, 1 + c_.repeated);
      expect_times("noisy sums of norms", min_times, totals, take(rows, c_.norm_total_noise));
    }
    if (is("dp-agd") || is("outpert")) {
      for (const privacy::Release& r : c_.releases) {
        const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism);
        if (gaussian == nullptr || gaussian->sigma == c_.size_noise ||
            gaussian->sigma == c_.feature_noise)
          continue;
        expect_times("noisy sums by " + number(gaussian->sigma),
                     r.count - std::min(r.count, c_.repeated), r.count,
                     take(rows, gaussian->sigma));
      }
    }
    for (const Certificate::Listed& l : rows)
      wrong(l.what + ": listed, and no release pays for it");
    if (is_engine()) {
      const std::uint64_t beside =
          (c_.size_noise > 0.0 ? 1u : 0u) + (c_.feature_noise > 0.0 ? 1u : 0u) + totals;
      if (mechanisms != c_.steps + beside)
        wrong("releases: expected " + std::to_string(c_.steps) + " steps and " +
              std::to_string(beside) + " others, found " + std::to_string(mechanisms));
      // Where steps were paid for twice the budget may end before the last step that was planned.
      const std::uint64_t made = c_.steps - std::min(c_.steps, c_.repeated);
      if (!is("dpis") && (made > c_.steps_planned || (made < c_.steps_planned && c_.repeated == 0)))
        wrong("steps: expected " + std::to_string(c_.steps_planned) + " as planned, found " +
              std::to_string(made));
    }
    if (is("privgene")) hold_selections();
  }

  void expect_size(std::vector<Certificate::Listed>& rows) {
    const auto row = std::ranges::find_if(rows, [&](const Certificate::Listed& l) {
      return l.noise_std == c_.size_noise && l.sensitivity == 1.0 && l.numbers == 1;
    });
    if (row == rows.end()) return wrong("noisy size: expected one, listed none");
    expect_times("noisy size", 1, 1, row->times);
    rows.erase(row);
  }

  void hold_selections() {
    const double epsilon = json_.at("selection_epsilon").get<double>();
    const auto generations = json_.at("generations").get<std::uint64_t>();
    const auto parents = json_.at("parents").get<std::uint64_t>();
    std::uint64_t count = 0;
    for (const privacy::Release& r : c_.releases)
      if (const auto* choice = std::get_if<privacy::BoundedRange>(&r.mechanism)) {
        expect(choice->epsilon == epsilon, "epsilon of a selection", epsilon, choice->epsilon);
        count += r.count;
      }
    // The last generation has one.
    const std::uint64_t all = generations > 0 ? (generations - 1) * parents + 1 : 0;
    expect_times("selections", all, all, count);
  }

  // Settings.

  std::string stated(const char* pointer) const {
    const Json& value = json_.at(Json::json_pointer(pointer));
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  bool states(const char* pointer) const { return json_.contains(Json::json_pointer(pointer)); }

  void hold_settings() {
    Statement& s = begin("settings");
    s.found = "config.toml, method " + c_.method;
    using Pair = std::pair<const char*, const char*>;
    for (const auto& [key, pointer] :
         {Pair{"method", "/method"}, Pair{"clipping", "/clipping"}, Pair{"rng", "/rng"},
          Pair{"precision", "/precision"}, Pair{"noisy-min", "/selection_noise"}})
      if (states(pointer)) expect(key, settings_.text(key), stated(pointer));
    hold_number("delta", c_.training_delta);
    for (const auto& [key, pointer] :
         {Pair{"loss-clip", "/loss_clip"}, Pair{"max-norm", "/max_norm"}, Pair{"huber", "/huber"},
          Pair{"solver-tolerance", "/solver_tolerance"}, Pair{"candidates", "/candidates"},
          Pair{"parents", "/parents"}, Pair{"quantile-target", "/quantile/target"},
          Pair{"quantile-min", "/quantile/C_least"}, Pair{"quantile-max", "/quantile/C_most"}})
      if (states(pointer)) hold_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
    for (const auto& [key, pointer] :
         {Pair{"holdout", "/holdout/share"}, Pair{"holdout-epsilon", "/holdout/epsilon"},
          Pair{"holdout-delta", "/holdout/delta"},
          Pair{"holdout-threshold", "/holdout/threshold"}}) {
      if (c_.status == "refused") break;  // nothing was said of held-out rows
      if (states(pointer) != settings_.has(key))
        wrong(std::string(key) +
              ": expected it in the certificate and in the settings, found it "
              "in one");
      else if (states(pointer))
        hold_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
    }
    // AdaCliP's gradients are scaled to 1.
    if (states("/C") && !is("adaclip")) hold_number("clip", c_.clip);
    if (settings_.has("sigma") && is_engine() && !is("dpis")) hold_number("sigma", c_.sigma);
    expect("features", settings_.text("features"), json_.value("features", std::string("none")));
    if (settings_.is_on("size-is-public") && c_.size_noise > 0.0)
      wrong("size-is-public: expected no noisy size, found one");
    for (const auto& [key, pointer] : {Pair{"fresh-noise-allowed", "/fresh_noise_allowed"},
                                       Pair{"allow-weak-privacy", "/allow_weak_privacy"}})
      if (settings_.has(key))
        expect(key, settings_.text(key), states(pointer) ? stated(pointer) : "false");
    if (is_engine()) hold_steps();
  }

  void hold_number(const std::string& key, double found) {
    const double expected = settings_.number(key);
    expect(expected == found, key, expected, found);
  }

  void hold_steps() {
    if (settings_.has("steps")) {
      const double steps = settings_.number("steps");
      expect(steps == static_cast<double>(c_.steps_planned), "steps", steps,
             static_cast<double>(c_.steps_planned));
    } else if (settings_.has("epochs")) {
      const double each = std::fmax(1.0, std::round(c_.size / settings_.number("batch")));
      const double steps = std::round(settings_.number("epochs") * each);
      expect(steps == static_cast<double>(c_.steps_planned), "steps of the epochs", steps,
             static_cast<double>(c_.steps_planned));
    }
  }

  void hold_for_release() {
    Statement& s = begin("for release");
    const bool says = json_.at("for_release").get<bool>();
    s.found = says ? "yes" : "no";
    if (json_.contains("not_for_release"))
      for (const Json& reason : json_["not_for_release"])
        s.found += ": " + reason.get<std::string>().substr(0, reason.get<std::string>().find(':'));
    const bool seeded = json_.at("seeded").get<bool>();
    if (seeded != settings_.has("seed")) wrong("seeded: the settings say otherwise");
    const Json& unsafe = json_.at("unsafe_flags");
    if (settings_.is_on("unsafe-diagnostics") &&
        std::ranges::find(unsafe, Json("unsafe-diagnostics")) == unsafe.end())
      wrong("unsafe_flags: expected unsafe-diagnostics, as in the settings");
    const bool may = !seeded && c_.generator != "philox" && unsafe.empty();
    if (says && !may) wrong("for_release: expected false");
    if (says == json_.contains("not_for_release"))
      wrong("not_for_release: expected exactly where it is not");
  }

  const Evidence& evidence_;
  Json json_;
  Certificate c_;
  Settings settings_;
  Verdict verdict_;
  std::vector<Statement> statements_;
};

}  // namespace

std::vector<Statement> hold_statements(const Evidence& evidence) {
  try {
    return Holder(evidence).run();
  } catch (const Json::exception& e) {
    throw std::invalid_argument(std::string("certificate: ") + e.what());
  }
}

}  // namespace cudp::verify
