#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/certificate/noisy_value.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/base/random_key.hpp"

namespace cudp {

/// The ledger entry that pays for a release.
struct Charge {
  privacy::Mechanism mechanism;
  /// Index of the release among the ledger's numbered releases (such as training steps). Empty if
  /// it was charged in advance, before the first numbered one.
  std::optional<std::uint64_t> number;
  std::uint64_t count = 1;  ///< number of releases, with consecutive indices from `number`
  /// Number of releases that together are one use of the mechanism, e.g. 2 if a covariance matrix
  /// is released in two parts. Used only if `number` is empty.
  std::uint64_t parts = 1;

  bool operator==(const Charge&) const = default;
};

/// Interface of the privacy budget: approves each release before its noise is drawn. Implemented by
/// PrivacyBudget (privacy_budget.hpp).
class ReleaseAuthority {
 public:
  ReleaseAuthority() = default;
  ReleaseAuthority(const ReleaseAuthority&) = delete;
  ReleaseAuthority& operator=(const ReleaseAuthority&) = delete;
  virtual ~ReleaseAuthority() = default;
  /// Returns whether the release may be made. If it returns true, the release has been charged and
  /// the charge is durable, or it was charged earlier under the same key.
  [[nodiscard]] virtual bool admit(const Charge& charge) = 0;
};

/// Public properties of one release of sums with Gaussian noise. They are fixed before the sums are
/// computed.
struct GaussianRelease {
  std::string_view name;  ///< name of the released value, for users
  Stream purpose;         ///< random stream; with `step` it selects this release's noise
  std::uint64_t step;
  double grid;  ///< g, a power of two; every sum is an integer multiple of it
  /// sigma, standard deviation of the noise [unit of the sums]; sigma / g is in [2^16, 2^40].
  double noise_std;
  double sensitivity;  ///< L2 sensitivity to one example [unit of the sums]
  /// How the release is charged. Its mechanism is Gaussian, PoissonGaussian, or AllocatedGaussian
  /// for a step of an epoch, with a noise multiplier of at most noise_std / sensitivity.
  Charge charge;

  bool operator==(const GaussianRelease&) const = default;
};

/// A release that a gate has made; listed in order.
struct Released {
  GaussianRelease release;
  std::size_t dimension;  ///< number of released values

  bool operator==(const Released&) const = default;
};

class ReleaseObserver;  // release_observer.hpp

/// Every private value passes a gate before it is released. The gate has the budget charged, and
/// adds Gaussian noise; no other code on the host adds noise to sums. For sums S, which are integer
/// multiples of g, it releases
///   R = S + g K,   K_j the integer nearest to (sigma / g) Z_j (kernels/random/rounded_normal.hpp)
/// Since S is in g Z^d, R = g round((S + sigma Z) / g). R is therefore post-processing of the
/// continuous Gaussian mechanism's output: a privacy bound proved for that mechanism holds for R to
/// the last bit, and nothing is added to epsilon or delta.
///
/// The gate queries the authority before it draws noise. Code that draws noise elsewhere (the steps
/// of an engine, selections with other noise) must call admit() first, and must report the released
/// values to this gate's release observer.
class Gate {
 public:
  /// authority: approves releases. release_observer: receives released values; may be null. Both
  /// must outlive the gate. earlier: the values that the run released before it was interrupted.
  Gate(Generator generator, SharedKey key, ReleaseAuthority& authority,
       std::vector<privacy::NoisyValue> earlier = {}, ReleaseObserver* release_observer = nullptr);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() = default;

  /// Releases sums with noise: returns R = S + g K, [d]. sums: S in multiples of the grid g. S / g
  /// + K is computed modulo 2^64 in two's complement and then rounded to double. Both are functions
  /// of R.
  ///
  /// Throws std::invalid_argument if g is not a power of two, if noise_std / g is not in [2^16,
  /// 2^40], if the sensitivity is not positive, or if there are no sums. Throws std::logic_error if
  /// the authority refuses the release, if there is less noise than the charge states, or if this
  /// gate has made a release for the same purpose and step before: two sums with the same noise
  /// reveal their difference.
  std::vector<double> release(const GaussianRelease& release, std::span<const std::int64_t> sums);
  double release(const GaussianRelease& release, std::int64_t sum);

  /// Draws the noise of releases for this purpose from another key. Call before the first of them.
  void use_key(Stream purpose, SharedKey key);

  /// Returns K, the noise in multiples of the grid g, for a release of one sum S, for an engine
  /// that adds it where S is computed. The engine must return nothing of S but S / g + K modulo
  /// 2^64. The release counts as made. Throws as release() does, and std::logic_error if the gate
  /// has a release observer, because it could not report the released value.
  std::int64_t draw_noise(const GaussianRelease& release);

  /// Returns whether a release may be made, and charges it if so. A caller that can continue
  /// without the release calls this first. release() calls it again, which charges a numbered
  /// release only once.
  [[nodiscard]] bool admit(const Charge& charge) { return authority_.admit(charge); }

  /// Returns a random stream for draws other than noise: batches, choices.
  RandomStream stream(Stream purpose, std::uint64_t number) const {
    return {generator_, key_.key(), purpose, number};
  }

  /// Returns the release observer of this training, or null.
  ReleaseObserver* release_observer() const { return release_observer_; }

  /// Returns the releases that this gate has made, in order.
  const std::vector<Released>& released() const { return released_; }
  /// Returns the releases of the run, including those before an interruption, in order. Equal
  /// consecutive releases are merged into one entry with a count.
  const std::vector<privacy::NoisyValue>& listed() const { return listed_; }

 private:
  void admit_once(const GaussianRelease& release, std::size_t dimension);
  void list(const GaussianRelease& release, std::size_t dimension);

  const RandomKey& key_of(Stream purpose) const;

  Generator generator_;
  SharedKey key_;
  std::map<Stream, SharedKey> other_keys_;  ///< of use_key()
  ReleaseAuthority& authority_;
  ReleaseObserver* release_observer_;
  std::vector<Released> released_;
  std::vector<privacy::NoisyValue> listed_;
  std::set<std::pair<Stream, std::uint64_t>> used_;
};

/// Returns the grid for sums that are integer multiples of `coarsest`, a power of two: `coarsest`
/// itself, or a finer power of two if s = noise_std / grid would otherwise be below 2^20. s exceeds
/// its range only if noise_std is above 2^40 coarsest. Throws std::invalid_argument unless
/// noise_std is finite and > 0.
double noise_grid(double noise_std, double coarsest);

/// Returns `sum` as a multiple of `grid`, a power of two, modulo 2^64. A sum that is not an integer
/// multiple is rounded to the nearest one; a sum that is not finite becomes 0.
std::int64_t units_of(double sum, double grid);
std::vector<std::int64_t> units_of(std::span<const double> sums, double grid);

}  // namespace cudp
