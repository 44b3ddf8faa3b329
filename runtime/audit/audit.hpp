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

/// The kind of canary.
enum class CanaryKind {
  /// The attacker sees every noisy sum, and chose the canaries' gradients: C along one parameter
  /// each (device/audit_tap.hpp). What the proof is about, so this shows most.
  gradient,
  /// The attacker sees the trained model. Canaries are training examples with a wrong label.
  example
};

struct AuditSettings {
  CanaryKind kind = CanaryKind::gradient;
  /// 1000 if not given, or as many as there can be: gradients one for each parameter of the
  /// model, examples half of the training set.
  std::optional<std::uint64_t> canaries;
  std::optional<std::uint64_t> guesses;  ///< half of them of each kind; a tenth of the canaries
  double confidence = 0.95;              ///< of each bound, in (0, 1)
};

/// An attack on one training, beside what its certificate says.
struct AuditResult {
  AuditSettings settings;  ///< with canaries and guesses
  privacy::Certificate certificate;
  double epsilon = 0.0;  ///< the certificate's
  double delta = 0.0;
  std::uint64_t members = 0;  ///< canaries that were in the training set
  privacy::Guesses guesses;
  /// Lower bounds on epsilon at delta: for any mechanism, for one whose trade-off curve is that of
  /// Gaussian noise, and for the run's own releases with more or less noise, where they are such.
  double any = 0.0;
  double gaussian = 0.0;
  std::optional<double> own;
  /// The attacker's score of every canary, and whether it was in the training set.
  std::vector<std::pair<double, bool>> scores;
  std::uint64_t steps = 0;
  double seconds = 0.0;

  /// Whether a bound is above the certificate's epsilon.
  bool refutes() const;
};

/// Trains once with canaries, as `cudp train` would (the same sampler, clipping, noise and
/// accounting), and attacks. Where a unit of privacy has several rows, a canary is a whole unit, of
/// as many equal rows. The canaries count as training examples, in the set or not: the public
/// number of examples, where there is one, has them all. Nothing is written, and nothing of such a
/// run is for release. Throws InputError, BudgetError.
AuditResult audit(const TrainConfig& config, const AuditSettings& settings, Reporter& reporter);

}  // namespace cudp
