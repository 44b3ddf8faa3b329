#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/bounds.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/checker.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/released.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Implementation of check_released(), which checks the published files of a run. Its parts:
/// released.cpp checks epsilon, the ledger and metrics.jsonl; released_checker_values.cpp the lists
/// of releases and noisy values; released_checker_settings.cpp the settings.
class ReleasedChecker {
 public:
  ReleasedChecker(const Evidence& evidence, Bounds& bounds);

  std::vector<Statement> run();

 private:
  void check_others();

  Statement& begin(std::string name) {
    statements_.push_back({.name = std::move(name), .found = {}, .wrong = {}});
    return statements_.back();
  }
  void wrong(std::string what) { statements_.back().wrong.push_back(std::move(what)); }
  void expect(bool holds, const std::string& where, double expected, double found) {
    if (!holds)
      wrong(where + ": expected " + privacy::number(expected) + ", found " +
            privacy::number(found));
  }
  void expect(const std::string& where, const std::string& expected, const std::string& found) {
    if (expected != found) wrong(where + ": expected " + expected + ", found " + found);
  }
  void add(const std::vector<std::string>& differences) {
    for (const std::string& d : differences) wrong(d);
  }
  void add_findings(std::initializer_list<std::string_view> rules);
  void check_rules(const char* name, std::initializer_list<std::string_view> rules);

  bool is_method(const char* method) const { return c_.method == method; }
  /// Returns whether the run has training steps that release noisy sums over batches. This follows
  /// from the method and the status, not from other fields, so that leaving a field out of a forged
  /// certificate does not avoid a check.
  bool is_engine() const { return kinds_of(c_).engine && c_.status != "refused"; }
  bool is_of(std::initializer_list<const char*> methods) const {
    return c_.status != "refused" &&
           std::ranges::any_of(methods, [&](const char* m) { return is_method(m); });
  }

  void check_epsilon();
  /// Checks the epsilon of a run of objective perturbation. One theorem bounds all its releases
  /// together (rdp/objective_perturbation.hpp).
  void check_objective();
  void check_ledger();
  void check_metrics();
  void check_holdout();
  void check_selection();
  void check_for_release();

  /// Checks that the stated sigma is the noise multiplier of the first step, and that the
  /// certificate lists a release with this noise multiplier.
  void check_sigma();

  // The list of noisy values.

  void check_releases();
  /// Returns how many Gaussian releases with this noise multiplier the certificate lists among its
  /// charged releases.
  std::uint64_t paid(double sigma) const;
  /// Removes from `rows`, a list of released values, those with the name `what` and this noise
  /// multiplier. Returns how many releases of such values the list had.
  std::uint64_t take(std::vector<privacy::NoisyValue>& rows, std::string_view what,
                     double sigma) const;
  void expect_times(const std::string& what, std::uint64_t min_times, std::uint64_t max_times,
                    std::uint64_t found);
  /// Removes from `rows`, a list of released values, the noisy statistics for features. A
  /// covariance matrix is listed as two releases, or as one if it has a single column.
  void take_features(std::vector<privacy::NoisyValue>& rows);
  /// Removes from `rows`, a list of released values, the noisy sums of gradient norms of method
  /// DPIS, and checks their number. totals: number of these sums that were charged. If the clipping
  /// norm adapts, two sums are charged for each epoch, but the first epoch releases only one. If
  /// the run lost its random key, repeated steps were charged again, but only the sums that the run
  /// used last are listed.
  void take_totals(std::vector<privacy::NoisyValue>& rows, std::uint64_t totals);
  /// Checks each entry in the certificate's list of released values: its name must be one that the
  /// method releases, and its grid (values are multiples of it) must fit its noise.
  void check_names();
  void expect_size(std::vector<privacy::NoisyValue>& rows);
  /// Checks PrivGene's noisy selections: their number and their epsilon.
  void check_selections();

  // Settings.

  void check_settings();
  void check_class_weights();
  void check_number(const std::string& key, double found);
  void check_steps();
  /// Returns the certificate's value at this JSON pointer, as text.
  std::string stated(const char* pointer) const;
  bool states(const char* pointer) const {
    return json_.contains(nlohmann::json::json_pointer(pointer));
  }

  const Evidence& evidence_;
  Bounds& bounds_;
  nlohmann::json json_;
  StatedNumbers c_;
  Settings settings_;
  std::optional<Charges> charges_;
  std::vector<std::string> rules_;  ///< differences found by check_release_rules
  bool has_fields_ = false;
  bool has_bounds_ = false;
  Verdict verdict_;
  std::vector<Statement> statements_;
};

}  // namespace cudp::verify
