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
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/checker.hpp"
#include "privacy/verify/line_search.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/optimizer.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/step_numbers.hpp"

namespace cudp::verify {

/// A float that was rounded up from a double, and roundings in the product that it was.
inline constexpr double kFloatAbove = 1.0 + 0x1p-22;
inline constexpr double kProduct = 1.0 - 0x1p-51;
/// The share that the host may add to a standard deviation, so that rounding never takes any away.
inline constexpr double kHostAbove = 1.0 + 1e-9;

/// The place where noise was drawn.
using Place = std::pair<std::uint32_t, std::uint64_t>;  // stream, step
/// The properties of a release by which a certificate lists it: name, numbers, sensitivity, noise,
/// grid.
using Listing = std::tuple<std::string, std::uint64_t, double, double, double>;

/// A number that tells states apart.
std::uint64_t hash_of(const transcript::State& s);

/// Moves what was found into a verdict.
void move_findings(Findings& findings, Verdict& verdict);

/// check(): goes through a run's transcript, record by record. run_checker.cpp has processes and
/// batches; run_checker_charges.cpp what releases are charged and listed as, _noise.cpp their
/// noise, _updates.cpp the parameters.
class RunChecker {
 public:
  /// Throws std::invalid_argument, std::out_of_range where the evidence cannot be read.
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

  void see(const transcript::Begin& b);

  /// The first key is the seed's; a fresh one is random.
  void check_seed(const transcript::Begin& b);

  /// A process goes on from a checkpoint at `step`: what was listed after it will be again.
  void forget_from(std::uint64_t step);
  void see(const transcript::State& s);
  void see(const transcript::Batch& b);

  /// The sensitivity of a sum of clipped gradients that an engine makes.
  bool is_engine_sum(const transcript::Release& r) const {
    return kinds_.engine && r.stream == kNoise;
  }

  void see(const transcript::Release& r);

  /// Figures of held-out rows, which the training's ledger does not pay for.
  void see_holdout(const transcript::Release& r);

  /// Who is never drawn was held out, from first to last.
  void check_drawn(const transcript::Batch& b, const std::vector<std::uint32_t>& drawn);

  /// Whether it is the first at its place under this key; where it is not, it must be the same.
  bool is_first(const transcript::Release& r);
  void check_kind(const transcript::Release& r);

  // What a release is charged as.

  /// Its number among the charges; none for what is charged before the first of them.
  std::optional<std::uint64_t> number_of(const transcript::Release& r) const;

  /// The mechanism that it was charged as, before; null where it was not.
  const privacy::Mechanism* check_charge(const transcript::Release& r, bool first);

  /// Takes one of the charges without a number, which are counted in halves: a covariance is
  /// released in two parts.
  const privacy::Mechanism* take(const transcript::Release& r, bool first);

  // Its noise.

  void check_noise(const transcript::Release& r);

  /// The places that noise of the charged epsilon chooses among the scores.
  void check_choice(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_engine_sum(const transcript::Release& r, const privacy::Mechanism* charged);
  void check_length(const transcript::Release& r, double examples, double sensitivity);
  void check_host_sum(const transcript::Release& r, const privacy::Mechanism* charged);

  /// A minimum, no sum: of a loss of slope 1 and l2 / 2 |w|^2 an example, found up to a tolerance
  /// in each of two neighbours.
  void check_minimum(const transcript::Release& r);

  // dpsgd-quantile: the clipping norm follows released counts.

  /// clip: C of the step, which is not released itself; off by the rounding of noise_std to float.
  void check_quantile(const transcript::Release& r, double clip);

  /// log C moves by -lr (share - target). Without the settings lr is unknown: the same everywhere.
  void check_followed(const transcript::Release& r, double clip);

  // dpis: an epoch's rate and divisor follow from its released sum of norms.

  /// K~ of the epoch of a step; 0 where it was not released.
  double norm_total(std::uint64_t step) const;
  void check_importance(const transcript::Release& r, double charged);

  // Updates.

  void see(const transcript::Update& u);

  /// A step of DP-AGD: along the sums of this iteration, merged by their precisions, and those of
  /// the regulariser, scaled to length 1.
  void see_descent(const transcript::Update& u);
  void check_divisor(const transcript::Update& u, const std::optional<transcript::Release>& sum);

  // At the end.

  void finish();

  /// All numbered charges were used, once each, unless a key was lost in between.
  void check_number_of_releases();

  /// The certificate's list of what the host released. Where a run was cut short, what was made
  /// after its last checkpoint may be missing from it, or not.
  void check_listed();

  Certificate certificate_;
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
  std::uint64_t key_ = 0;  ///< number of the present one, of the transcript's
  std::optional<std::uint64_t>
      key_lines_;  ///< of the present one: keys that the ledger lost before
  std::uint64_t last_key_lines_ = 0;
  std::optional<transcript::Batch> batch_;
  std::optional<transcript::Release> sum_;  ///< that waits for its update
  std::vector<Measured> measured_;          ///< likewise
  std::uint64_t next_step_ = 0;
  std::optional<transcript::State> state_;
  std::map<std::uint64_t, std::uint64_t> states_;  ///< hashes, by steps done
  std::map<std::uint32_t, bool> held_;             ///< examples that were drawn: held out or not
  std::uint64_t holdout_releases_ = 0;
  std::optional<bool> normalised_;
  std::map<std::pair<std::uint64_t, Place>, transcript::Release> places_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> numbers_used_;  ///< key, number in the ledger
  std::map<std::string, std::uint64_t> taken_;  ///< of charges without a number, in halves
  std::set<std::tuple<std::uint64_t, Place, Listing>> made_;
  std::map<Place, Listing> listed_at_least_;
  std::map<std::uint64_t, double> counts_, clips_;
  LineSearch line_search_;
  double quantile_low_ = -std::numeric_limits<double>::infinity();
  double quantile_high_ = std::numeric_limits<double>::infinity();
  std::map<std::uint64_t, std::pair<double, double>> norm_totals_;  ///< C and K' by epoch
};

}  // namespace cudp::verify
