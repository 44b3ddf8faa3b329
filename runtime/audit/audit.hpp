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

/// Kind of canary.
enum class CanaryKind {
  /// The attacker sees every noisy sum and chose the canaries' gradients: C along one parameter
  /// each (device/audit_tap.hpp). The privacy proof assumes this attacker, so these canaries give
  /// the largest lower bounds.
  gradient,
  /// The attacker sees the trained model. Canaries are training examples with a wrong label.
  example
};

struct AuditSettings {
  CanaryKind kind = CanaryKind::gradient;
  /// Number of canaries. By default 1000, or the maximum if that is smaller: for gradients the
  /// number of the model's parameters, for examples half of the training set.
  std::optional<std::uint64_t> canaries;
  /// Number of guesses, half of them for members. By default a tenth of the canaries.
  std::optional<std::uint64_t> guesses;
  double confidence = 0.95;  ///< confidence level of each bound, in (0, 1)
};

/// Result of an attack on one training, with the certificate of that training.
struct AuditResult {
  AuditSettings settings;  ///< the settings used; canaries and guesses are set
  privacy::Certificate certificate;
  double epsilon = 0.0;  ///< epsilon of the certificate
  double delta = 0.0;
  std::uint64_t members = 0;  ///< number of canaries in the training set
  privacy::Guesses guesses;
  /// Lower bounds on epsilon at delta: `any` for every mechanism, `gaussian` for a mechanism with
  /// the trade-off curve of Gaussian noise, `own` for the run's own releases with another noise
  /// multiplier. `own` is empty if the releases have no such curve.
  double any = 0.0;
  double gaussian = 0.0;
  std::optional<double> own;
  /// Score of every canary, and whether it was in the training set.
  std::vector<std::pair<double, bool>> scores;
  std::uint64_t steps = 0;
  double seconds = 0.0;

  /// Returns whether a lower bound is above the certificate's epsilon.
  bool refutes() const;
};

/// Trains once with canaries and attacks the result. The training is that of `cudp train`: the same
/// sampler, clipping, noise and accounting. If a unit of privacy has several rows, a canary is a
/// whole unit of that many equal rows. All canaries, members or not, are included in the public
/// number of examples, if there is one. Nothing is written, and nothing of such a run is for
/// release. Throws InputError, BudgetError.
AuditResult audit(const TrainConfig& config, const AuditSettings& settings, Reporter& reporter);

}  // namespace cudp
