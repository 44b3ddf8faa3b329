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

/// Random stream and step from which the noise of a release is drawn.
using NoiseSource = std::pair<std::uint32_t, std::uint64_t>;
/// The properties of a release that a certificate lists: name, number of values, sensitivity,
/// noise, grid.
using Listing = std::tuple<std::string, std::uint64_t, double, double, double>;

/// Returns a hash of all numbers of a training state.
std::uint64_t hash_of(const transcript::State& s);

/// Moves differences, skipped checks and epsilon from `findings` into `verdict`.
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
  /// Returns the largest factor by which rounding may lengthen a clipped gradient.
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

  // Functions that process records of the transcript, by kind of record.

  void process(const transcript::Begin& b);

  /// Checks that the run's first key is derived from the seed. A fresh key after a loss is random.
  void check_seed(const transcript::Begin& b);

  /// Handles a resume from a checkpoint at `step`. Releases of later steps that were made before
  /// the resume need not be in the certificate's list.
  void forget_from(std::uint64_t step);
  void process(const transcript::State& s);
  void process(const transcript::Batch& b);

  /// Returns whether a release is an engine's noisy sum of clipped gradients.
  bool is_engine_sum(const transcript::Release& r) const {
    return kinds_.engine && r.stream == kNoise;
  }

  void process(const transcript::Release& r);

  /// Checks the release of a figure of held-out rows, which is not charged to the training's
  /// ledger.
  void check_holdout_figure(const transcript::Release& r);

  /// Checks a batch if rows are held out: an example that was drawn is either in every batch that
  /// drew it or in none.
  void check_drawn(const transcript::Batch& b, const std::vector<std::uint32_t>& drawn);

  /// Returns whether a release is the first with its random stream and step under this key. A later
  /// one must equal the first; otherwise adds a finding.
  bool is_first(const transcript::Release& r);
  void check_kind(const transcript::Release& r);

  // Checks that releases were charged.

  /// Returns the index of a release among the ledger's numbered charges; nullopt if it was charged
  /// without a number.
  std::optional<std::uint64_t> number_of(const transcript::Release& r) const;

  /// Checks that a release was charged before it was made. Returns the mechanism it was charged as;
  /// null if it was not. first: result of is_first().
  const privacy::Mechanism* check_charge(const transcript::Release& r, bool first);

  /// Assigns one of the ledger's charges without a number to this release. Returns the mechanism
  /// that was charged; null if the ledger has none like it. Charges are counted in halves, because
  /// a covariance matrix is released in two parts.
  const privacy::Mechanism* take(const transcript::Release& r, bool first);

  // Checks of the noise of releases.

  void check_noise(const transcript::Release& r);

  /// Checks that the released indices are those that the noise of the charged epsilon chooses among
  /// the scores.
  void check_choice(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_engine_sum(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_length(const transcript::Release& r, double examples, double sensitivity);
  void check_host_sum(const transcript::Release& r, const privacy::Mechanism* charged);

  /// Checks the stated sensitivity of a released minimum of a loss. Each example adds a loss with
  /// slope at most 1 and l2 / 2 |w|^2. Both neighbours' minima are found up to a tolerance.
  void check_minimum(const transcript::Release& r);

  // Checks for method dpsgd-quantile, whose clipping norm follows released counts.

  /// Checks the clipping norm C of a step. clip: C, computed from the noise of the gradient sum. It
  /// is not released itself, and is known up to the rounding of that noise to float.
  void check_quantile(const transcript::Release& r, double clip);

  /// Checks that log C has changed by -lr (share - target), where `share` is the released fraction
  /// of gradients with norm at most C in the step before. Without settings lr is unknown, but must
  /// be the same at every step.
  void check_followed(const transcript::Release& r, double clip);

  // Checks for method dpis: an epoch's rate and divisor follow from its released sum of norms.

  /// Returns K~, the noisy sum of gradient norms that was released for this step's epoch; 0 if
  /// there is none.
  double norm_total(std::uint64_t step) const;
  void check_importance(const transcript::Release& r, double charged);

  // Checks of parameter updates.

  void process(const transcript::Update& u);

  /// Checks a parameter update of DP-AGD. Its direction is the mean of the noisy gradients of this
  /// iteration, weighted by 1 / variance, plus the regulariser's gradient, scaled to length 1.
  void check_descent(const transcript::Update& u);
  void check_divisor(const transcript::Update& u, const std::optional<transcript::Release>& sum);

  // Checks of the whole run, after the last record.

  void finish();

  /// Checks that every charge was used exactly once. After a lost key, numbered charges may be
  /// unused.
  void check_number_of_releases();

  /// Checks the certificate's list of releases made on the host. If a run was interrupted, releases
  /// after its last checkpoint may be missing from the list.
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
  std::uint64_t key_ = 0;  ///< index of the current key, counted in the transcript
  std::optional<std::uint64_t>
      key_lines_;  ///< number of key losses in the ledger before the current key
  std::uint64_t last_key_lines_ = 0;
  std::optional<transcript::Batch> batch_;
  /// Noisy gradient sum for which no update has been read yet.
  std::optional<transcript::Release> sum_;
  /// DP-AGD's noisy gradient sums for which no update has been read yet.
  std::vector<Measured> measured_;
  std::uint64_t next_step_ = 0;
  std::optional<transcript::State> state_;
  /// Hash of the training state after each number of steps.
  std::map<std::uint64_t, std::uint64_t> states_;
  std::map<std::uint32_t, bool> held_;  ///< whether a drawn example is held out, by example
  std::uint64_t holdout_releases_ = 0;
  std::optional<bool> normalised_;
  std::map<std::pair<std::uint64_t, NoiseSource>, transcript::Release> first_releases_;
  /// Numbered charges that were used: key, number in the ledger.
  std::set<std::pair<std::uint64_t, std::uint64_t>> numbers_used_;
  /// Halves used of charges without a number, by mechanism.
  std::map<std::string, std::uint64_t> taken_;
  std::set<std::tuple<std::uint64_t, NoiseSource, Listing>> made_;
  std::map<NoiseSource, Listing> listed_at_least_;
  std::map<std::uint64_t, double> counts_, clips_;
  LineSearch line_search_;
  double quantile_low_ = -std::numeric_limits<double>::infinity();
  double quantile_high_ = std::numeric_limits<double>::infinity();
  /// By epoch of DPIS: the sensitivity of the sum of gradient norms, which is C, and the noisy sum.
  std::map<std::uint64_t, std::pair<double, double>> norm_totals_;
};

}  // namespace cudp::verify
