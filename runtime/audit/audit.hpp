#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "privacy/audit.hpp"
#include "privacy/certificate/certificate.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"

namespace cudp {

/// Kind of canaries (examples or gradients whose presence an attacker guesses) that an audit
/// inserts into the training.
enum class CanaryKind {
  /// Each canary is a gradient along one parameter, with norm C (the clipping norm), and the
  /// attacker sees every noisy sum (device/audit_tap.hpp). This is the attacker that the privacy
  /// proof assumes, so these canaries give the largest lower bounds on epsilon.
  gradient,
  /// Each canary is a training example with a wrong label, and the attacker sees only the trained
  /// model.
  example
};

/// Settings of an audit: the kind of canaries, and the numbers of canaries and guesses.
struct AuditSettings {
  CanaryKind kind = CanaryKind::gradient;
  /// Number of canaries. Empty: 1000, or the maximum if that is smaller. The maximum for gradients
  /// is the number of the model's parameters, for examples half of the training set.
  std::optional<std::uint64_t> canaries;
  /// Number of guesses. In half of them the attacker guesses that a canary was included in the
  /// training (is a member), in half that it was not. Empty: a tenth of the canaries.
  std::optional<std::uint64_t> guesses;
  double confidence = 0.95;  ///< confidence level of each bound, in (0, 1)
};

/// Result of an attack on one training, together with the training's certificate.
struct AuditResult {
  /// The settings that were used, with the numbers of canaries and guesses set.
  AuditSettings settings;
  privacy::Certificate certificate;
  double epsilon = 0.0;  ///< epsilon that the training's certificate states
  double delta = 0.0;
  std::uint64_t members = 0;  ///< number of canaries that were in the training set
  privacy::Guesses guesses;
  /// Lower bounds on epsilon at the certificate's delta, computed from the attacker's guesses. The
  /// bound `any` assumes nothing about the mechanism. The bound `gaussian` assumes that the
  /// mechanism has the trade-off curve of Gaussian noise. The bound `own` assumes that the
  /// mechanism makes the releases in the run's ledger, with all noise multipliers changed by one
  /// unknown factor. It is nullopt if the trade-off curve of these releases is not known.
  double any = 0.0;
  double gaussian = 0.0;
  std::optional<double> own;
  /// Score of every canary, and whether it was in the training set.
  std::vector<std::pair<double, bool>> scores;
  std::uint64_t steps = 0;
  double seconds = 0.0;

  /// Returns whether one of the lower bounds exceeds the epsilon that the certificate states, so
  /// that the certificate is wrong (up to the bounds' confidence).
  bool refutes() const;
};

/// Audits a training. Trains once with canaries, each of which is included with probability 1/2,
/// and guesses from the result which canaries were included. The training is that of `cudp train`,
/// with the same sampler, clipping, noise and accounting. If a unit of privacy has several rows,
/// each canary is a whole unit of that many equal rows. If the number of training examples is
/// public, that number counts every canary, included or not. Writes no file. No result of an
/// audited training may be released. Throws InputError if the settings do not allow an audit or a
/// training. Throws BudgetError if the privacy budget does not suffice.
AuditResult audit(const TrainConfig& config, const AuditSettings& settings, Reporter& reporter);

}  // namespace cudp
