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

/// Source of a release's noise: the random stream and the step. Two releases with the same source
/// under the same key have the same noise.
using NoiseSource = std::pair<std::uint32_t, std::uint64_t>;
/// A released value as the certificate lists it: name, number of values, sensitivity, standard
/// deviation of the noise, grid (values are multiples of it).
using Listing = std::tuple<std::string, std::uint64_t, double, double, double>;

/// Returns a hash of all numbers of a training state: parameters, moments and average.
std::uint64_t hash_of(const transcript::State& s);

/// Moves the errors, skipped checks and epsilon from `findings` into `verdict`.
void move_findings(Findings& findings, Verdict& verdict);

/// Implementation of check(): reads a run's transcript record by record. run_checker.cpp checks the
/// starts of processes and the batches, run_checker_charges.cpp the charges and the list of
/// releases, run_checker_noise.cpp the noise, run_checker_updates.cpp the parameters.
class RunChecker {
 public:
  /// Reads the files and the transcript of a run. Throws std::invalid_argument or std::out_of_range
  /// if they cannot be read.
  explicit RunChecker(const Evidence& evidence);

  Verdict run();

 private:
  bool is_method(const char* method) const { return certificate_.method == method; }
  /// Returns the factor by which rounding may lengthen a clipped gradient: sensitivity / clip_norm.
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

  /// Checks that the first random key of the run is the one that is derived from its seed. (A key
  /// that replaces a lost one is random.)
  void check_seed(const transcript::Begin& b);

  /// Prepares for a process that resumes from a checkpoint at `step`: releases of later steps that
  /// an earlier process made may be missing from the certificate's list.
  void forget_from(std::uint64_t step);
  void process(const transcript::State& s);
  void process(const transcript::Batch& b);

  /// Returns whether a release is a noisy sum of clipped gradients, made by a training step.
  bool is_engine_sum(const transcript::Release& r) const {
    return kinds_.engine && r.stream == kNoise;
  }

  void process(const transcript::Release& r);

  /// Checks a released noisy number of held-out rows, such as a count of correct predictions. The
  /// training's ledger does not charge it.
  void check_holdout_figure(const transcript::Release& r);

  /// If rows are held out, checks that each example is either trained on or held out throughout the
  /// run: of the batches for which the sampler drew it, it must be in all, or in none. drawn: the
  /// examples that the sampler drew for the batch b, held-out ones included.
  void check_drawn(const transcript::Batch& b, const std::vector<std::uint32_t>& drawn);

  /// Returns whether a release is the first with its random stream and step under the current key.
  /// A later one repeats it, for instance after a restart; it must be equal to the first, otherwise
  /// a finding is added.
  bool is_first(const transcript::Release& r);
  void check_kind(const transcript::Release& r);

  // Checks that releases were charged.

  /// Returns the index with which the ledger charges this release; nullopt if the release is
  /// charged without an index (for example the noisy number of examples).
  std::optional<std::uint64_t> number_of(const transcript::Release& r) const;

  /// Checks that a release was charged before it was made. Returns the mechanism that was charged;
  /// null if none was. first: false if the release repeats an earlier one.
  const privacy::Mechanism* check_charge(const transcript::Release& r, bool first);

  /// Looks for a charge for this release among those that the ledger lists without an index, marks
  /// it as used and returns its mechanism; null if none is left. first: false if the release
  /// repeats an earlier one. Charges are counted in halves, because a covariance matrix is charged
  /// once and released in two parts.
  const privacy::Mechanism* take(const transcript::Release& r, bool first);

  // Checks of the noise of releases.

  void check_noise(const transcript::Release& r);

  /// Checks that a noisy choice (a selection of indices by noisy scores) released the right
  /// indices: draws its noise again, at the charged epsilon, and repeats the selection from the
  /// private scores. charged: the charged mechanism; null if there is none.
  void check_choice(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_engine_sum(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_length(const transcript::Release& r, double examples, double sensitivity);
  void check_host_sum(const transcript::Release& r, const privacy::Mechanism* charged);

  /// Checks that the sensitivity stated for the released minimum of an objective is at least (1 + 2
  /// tolerance) / (l2 n), with n the number of examples. Each example's loss has a slope of at most
  /// 1, and the objective's regulariser is l2 / 2 |w|^2, with w the parameters. tolerance: the
  /// solver's, which counts twice, because each of two neighbouring data sets has an inexact
  /// minimum.
  void check_minimum(const transcript::Release& r);

  // Checks for method dpsgd-quantile, whose clipping norm follows released counts.

  /// Checks the clipping norm, which is not released, of a step of method dpsgd-quantile. clip: the
  /// clipping norm that follows from the noise on the step's gradient sum; it differs from the
  /// exact one by the rounding of that noise to float.
  void check_quantile(const transcript::Release& r, double clip);

  /// Checks that log(clip_norm) has changed by -lr (share - target) since the previous step. share:
  /// the noisy fraction, released in that step, of gradients with norm at most clip_norm. target,
  /// lr: the quantile and the learning rate in the settings; without settings lr must be the same
  /// at every step. clip: clip_norm of this step.
  void check_followed(const transcript::Release& r, double clip);

  // Checks for method dpis: an epoch's rate and divisor follow from its released sum of norms.

  /// Returns the noisy sum of all gradient norms that DPIS released for this step's epoch; 0 if
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

  /// Checks that every charge of the ledger was used by exactly one release. If the run lost its
  /// random key and continued with a new one, charges of steps may be unused.
  void check_number_of_releases();

  /// Checks that the certificate lists the releases that were made on the host, outside the engine.
  /// If a run was interrupted, releases after its last checkpoint may be missing from the list.
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
  std::uint64_t key_ = 0;  ///< number of random keys in the transcript before the current one
  /// Number of key losses that the ledger lists before the current key; nullopt until the first
  /// release under that key was read.
  std::optional<std::uint64_t> key_lines_;
  std::uint64_t last_key_lines_ = 0;
  std::optional<transcript::Batch> batch_;
  /// The noisy gradient sum of the current step, until the transcript's record of the update that
  /// uses it was read.
  std::optional<transcript::Release> sum_;
  /// The noisy gradient sums of DP-AGD's current iteration, until the record of the update that
  /// uses them was read.
  std::vector<Measured> measured_;
  std::uint64_t next_step_ = 0;
  std::optional<transcript::State> state_;
  /// Hashes of the training states so far, by number of steps done. A process that resumes must
  /// start from the state with its number of steps.
  std::map<std::uint64_t, std::uint64_t> states_;
  std::map<std::uint32_t, bool> held_;  ///< for each example drawn so far, whether it is held out
  std::uint64_t holdout_releases_ = 0;
  std::optional<bool> normalised_;
  std::map<std::pair<std::uint64_t, NoiseSource>, transcript::Release> first_releases_;
  /// Charges in the ledger for which the transcript's release was found, of releases that have an
  /// index: the number of the random key, and the release's index in the ledger.
  std::set<std::pair<std::uint64_t, std::uint64_t>> numbers_used_;
  /// Charges without an index that were used so far, in halves, by mechanism (its exact text). A
  /// covariance matrix is released in two parts and charged once.
  std::map<std::string, std::uint64_t> taken_;
  std::set<std::tuple<std::uint64_t, NoiseSource, Listing>> made_;
  std::map<NoiseSource, Listing> listed_at_least_;
  std::map<std::uint64_t, double> counts_, clips_;
  LineSearch line_search_;
  double quantile_low_ = -std::numeric_limits<double>::infinity();
  double quantile_high_ = std::numeric_limits<double>::infinity();
  /// The clipping norm and the noisy sum of gradient norms of each epoch of DPIS. The clipping norm
  /// is the sensitivity of that sum.
  std::map<std::uint64_t, std::pair<double, double>> norm_totals_;
};

}  // namespace cudp::verify
