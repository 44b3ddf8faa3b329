#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/transcript/records.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/checker.hpp"
#include "privacy/verify/line_search.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/optimizer.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "privacy/verify/step_numbers.hpp"
#include "privacy/verify/tolerances.hpp"

namespace cudp::verify {

/// Source of a release's noise: stream and step.
using NoiseSource = std::pair<std::uint32_t, std::uint64_t>;
/// The properties of a release that a certificate lists: name, number of values, sensitivity,
/// noise, grid.
using Listing = std::tuple<std::string, std::uint64_t, double, double, double>;

/// Hash of all numbers of a state.
std::uint64_t hash_of(const transcript::State& s);

/// Moves findings, skipped checks and epsilon into a verdict.
void move_findings(Findings& findings, Verdict& verdict);

/// Implementation of check(): reads a run's transcript record by record. run_checker.cpp checks
/// processes and batches, run_checker_charges.cpp the charges and the list of releases,
/// run_checker_noise.cpp noise, run_checker_updates.cpp parameters.
class RunChecker {
 public:
  /// Throws std::invalid_argument or std::out_of_range if the evidence cannot be read.
  explicit RunChecker(const Evidence& evidence);

  Verdict run();

 private:
  bool is_method(const char* method) const { return certificate_.method == method; }
  /// The factor by which rounding may lengthen a clipped gradient.
  double rounding() const { return certificate_.sensitivity / certificate_.clip; }

  void add(const char* rule, std::string what) { findings_.add(rule, std::move(what)); }
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found) {
    findings_.expect(holds, rule, where, expected, found);
  }
  void skip(const std::string& what) { findings_.skip(what); }
  static std::string at(const transcript::Release& r) {
    return r.name + ", step " + std::to_string(r.step);
  }
  static std::string at(std::uint64_t step) { return "step " + std::to_string(step); }

  // The transcript.

  void process(const transcript::Begin& b);

  /// Checks that the first key is derived from the seed. A fresh key after a loss is random.
  void check_seed(const transcript::Begin& b);

  /// Handles a resume from a checkpoint at `step`. Releases of later steps that were made before
  /// the resume need not be in the certificate's list.
  void forget_from(std::uint64_t step);
  void process(const transcript::State& s);
  void process(const transcript::Batch& b);

  /// Whether a release is an engine's sum of clipped gradients.
  bool is_engine_sum(const transcript::Release& r) const {
    return kinds_.engine && r.stream == kNoise;
  }

  void process(const transcript::Release& r);

  /// Checks a figure of held-out rows, which the training's ledger does not pay for.
  void check_holdout_figure(const transcript::Release& r);

  /// Checks a batch if rows are held out: an example that was drawn is either in every batch that
  /// drew it or in none.
  void check_drawn(const transcript::Batch& b, const std::vector<std::uint32_t>& drawn);

  /// Returns whether a release is the first with its stream and step under this key. A later one
  /// must be equal to the first; otherwise this adds a finding.
  bool is_first(const transcript::Release& r);
  void check_kind(const transcript::Release& r);

  // Charges of releases.

  /// Number of a release among the numbered charges; empty for one charged without a number.
  std::optional<std::uint64_t> number_of(const transcript::Release& r) const;

  /// Returns the mechanism that a release was charged as before it was made; null if it was not.
  const privacy::Mechanism* check_charge(const transcript::Release& r, bool first);

  /// Uses up one of the ledger's charges without a number for this release. Returns the mechanism
  /// that was charged; null if the ledger has none like it. Charges are counted in halves, because
  /// a covariance is released in two parts.
  const privacy::Mechanism* take(const transcript::Release& r, bool first);

  // Noise of releases.

  void check_noise(const transcript::Release& r);

  /// Checks that noise of the charged epsilon chooses the released indices among the scores.
  void check_choice(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_engine_sum(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_length(const transcript::Release& r, double examples, double sensitivity);
  void check_host_sum(const transcript::Release& r, const privacy::Mechanism* charged);

  /// Checks the sensitivity of a released minimum, which is not a sum. Each example has a loss of
  /// slope at most 1 and l2 / 2 |w|^2. Both neighbours' minima are found up to a tolerance.
  void check_minimum(const transcript::Release& r);

  // Method dpsgd-quantile: the clipping norm follows released counts.

  /// `clip`: C of the step. It is not released itself, and is exact up to the rounding of noise_std
  /// to float.
  void check_quantile(const transcript::Release& r, double clip);

  /// Checks that log C changes by -lr (share - target) after a step. Without settings lr is
  /// unknown, but must be the same at every step.
  void check_followed(const transcript::Release& r, double clip);

  // Method dpis: an epoch's rate and divisor follow from its released sum of norms.

  /// Returns the noisy sum of norms (K~) that the epoch of this step released; 0 if it released
  /// none.
  double norm_total(std::uint64_t step) const;
  void check_importance(const transcript::Release& r, double charged);

  // Updates.

  void process(const transcript::Update& u);

  /// Checks a step of DP-AGD. Its direction is the sums of this iteration, averaged by their
  /// precisions, plus the regulariser's gradient, scaled to length 1.
  void check_descent(const transcript::Update& u);
  void check_divisor(const transcript::Update& u, const std::optional<transcript::Release>& sum);

  // Checks after the last record.

  void finish();

  /// Checks that every charge was used exactly once. After a lost key, numbered charges may be
  /// unused.
  void check_number_of_releases();

  /// Checks the certificate's list of the host's releases. If a run was interrupted, releases after
  /// its last checkpoint may be missing from the list.
  void check_listed();

  StatedNumbers certificate_;
  Charges charges_;
  Settings settings_;
  std::vector<transcript::Record> records_;
  Kinds kinds_;
  std::uint64_t steps_per_epoch_ = 1;
  std::uint64_t totals_an_epoch_ = 0;
  Findings findings_;
  StepNumbers numbers_;
  Verdict verdict_;

  std::optional<transcript::Begin> begin_;
  std::set<std::array<std::uint32_t, 8>> keys_;
  std::uint64_t key_ = 0;  ///< index of the current key in the transcript
  std::optional<std::uint64_t>
      key_lines_;  ///< number of key losses in the ledger before the current key
  std::uint64_t last_key_lines_ = 0;
  std::optional<transcript::Batch> batch_;
  std::optional<transcript::Release> sum_;  ///< engine sum that has had no update yet
  std::vector<Measured> measured_;          ///< DP-AGD's sums that have had no update yet
  std::uint64_t next_step_ = 0;
  std::optional<transcript::State> state_;
  std::map<std::uint64_t, std::uint64_t> states_;  ///< number of steps done -> hash of the state
  std::map<std::uint32_t, bool> held_;             ///< drawn example -> whether it is held out
  std::uint64_t holdout_releases_ = 0;
  std::optional<bool> normalised_;
  std::map<std::pair<std::uint64_t, NoiseSource>, transcript::Release> first_releases_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> numbers_used_;  ///< key, number in the ledger
  std::map<std::string, std::uint64_t> taken_;  ///< halves used of charges without a number
  std::set<std::tuple<std::uint64_t, NoiseSource, Listing>> made_;
  std::map<NoiseSource, Listing> listed_at_least_;
  std::map<std::uint64_t, double> counts_, clips_;
  LineSearch line_search_;
  double quantile_low_ = -std::numeric_limits<double>::infinity();
  double quantile_high_ = std::numeric_limits<double>::infinity();
  /// Number of the epoch -> C and the noisy sum of norms.
  std::map<std::uint64_t, std::pair<double, double>> norm_totals_;
};

}  // namespace cudp::verify
