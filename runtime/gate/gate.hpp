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

/// The entry of the ledger (list of charges) to which a release is charged.
struct Charge {
  privacy::Mechanism mechanism;
  /// Index of the release among the ledger's numbered releases, such as training steps. Empty for a
  /// release that has no index, e.g. the noisy number of examples; it must be charged in advance,
  /// before the first numbered release.
  std::optional<std::uint64_t> number;
  std::uint64_t count = 1;  ///< number of releases, with consecutive indices from `number`
  /// Number of releases that are together one output of the mechanism and charged once, e.g. 2 for
  /// a covariance matrix that is released in two parts. Used only if `number` is empty.
  std::uint64_t parts = 1;

  bool operator==(const Charge&) const = default;
};

/// Interface of the privacy budget: it approves or refuses each release before the noise of the
/// release is drawn. Implemented by PrivacyBudget (privacy_budget.hpp).
class ReleaseAuthority {
 public:
  ReleaseAuthority() = default;
  ReleaseAuthority(const ReleaseAuthority&) = delete;
  ReleaseAuthority& operator=(const ReleaseAuthority&) = delete;
  virtual ~ReleaseAuthority() = default;
  /// Returns whether the release may be made. If true, its charge is in the ledger on disk: it has
  /// been written now, or was written before with the same random key, in which case the release
  /// has the same noise as before.
  [[nodiscard]] virtual bool admit(const Charge& charge) = 0;
};

/// Public description of a release of noisy sums, which a caller passes to Gate::release(): name,
/// random stream, grid, Gaussian noise, sensitivity and charge. It is fixed before the sums are
/// computed.
struct GaussianRelease {
  /// Name of the released value, shown to users and listed in the certificate.
  std::string_view name;
  /// Random stream from which the noise is drawn. Together with `step` it selects the random
  /// numbers.
  Stream purpose;
  std::uint64_t step;
  double grid;  ///< g, a power of two; every sum is an integer multiple of it [unit of the sums]
  /// Standard deviation sigma of the noise [unit of the sums]; sigma / g is in [2^16, 2^40].
  double noise_std;
  /// L2 sensitivity of the sums: their largest change if one example is added or removed [unit of
  /// the sums].
  double sensitivity;
  /// The mechanism as which the release is charged, and its index. The mechanism is Gaussian,
  /// PoissonGaussian, or AllocatedGaussian for a step of an epoch under random allocation. Its
  /// noise multiplier must be at most noise_std / sensitivity.
  Charge charge;

  bool operator==(const GaussianRelease&) const = default;
};

/// A release that a gate has made: its public properties and its size.
struct Released {
  GaussianRelease release;
  std::size_t dimension;  ///< number of released values

  bool operator==(const Released&) const = default;
};

class ReleaseObserver;  // release_observer.hpp

/// Releases private sums on the host: charges the budget, then adds Gaussian noise. No other code
/// on the host adds noise to sums. For sums S, which are integer multiples of g, it releases
///   R = S + g K,   K_j the integer nearest to (sigma / g) Z_j (kernels/random/rounded_normal.hpp)
/// Since S is in g Z^d, R = g round((S + sigma Z) / g). R is therefore post-processing of the
/// continuous Gaussian mechanism's output: a privacy bound proved for that mechanism holds for R to
/// the last bit, and nothing is added to epsilon or delta.
///
/// The gate calls ReleaseAuthority::admit() before it draws noise. Code that draws noise elsewhere
/// (the steps of an engine, selections with other noise) must call admit() first, and must report
/// the released values to this gate's release observer.
class Gate {
 public:
  /// Makes a gate. authority: approves or refuses each release. release_observer: receives released
  /// values; may be null. Both must outlive the gate. generator, key: generator of random numbers
  /// and its key, from which noise is drawn. earlier: values that the run released before it was
  /// interrupted, with which listed() begins.
  Gate(Generator generator, SharedKey key, ReleaseAuthority& authority,
       std::vector<privacy::NoisyValue> earlier = {}, ReleaseObserver* release_observer = nullptr);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() = default;

  /// Releases d sums S with noise: returns R = S + g K, [d], where g is the grid and K the noise in
  /// multiples of g. sums: S / g, integers. S / g + K is computed modulo 2^64 in two's complement,
  /// multiplied by g and rounded to double. The reduction and the rounding are post-processing of
  /// R.
  ///
  /// Throws std::invalid_argument if g is not a power of two, if noise_std / g is not in [2^16,
  /// 2^40], if the sensitivity is not positive, or if there are no sums. Throws std::logic_error if
  /// the privacy budget refuses the release, if there is less noise than the charge states, or if
  /// this gate has made a release for the same purpose and step before: two sums with the same
  /// noise reveal their difference.
  std::vector<double> release(const GaussianRelease& release, std::span<const std::int64_t> sums);
  double release(const GaussianRelease& release, std::int64_t sum);

  /// Makes all releases with the random stream `purpose` draw their noise with `key` instead of the
  /// gate's own key. Call it before the first of these releases. Used for the noisy number of
  /// examples if several trainings share it, because its noise then has a key of its own.
  void use_key(Stream purpose, SharedKey key);

  /// Releases one sum S whose value only the engine has (code that computes training steps on a
  /// device). S is a multiple of the grid g. Returns the noise K, in multiples of g: the engine
  /// computes S / g + K modulo 2^64, and must output nothing else that depends on S. Throws the
  /// exceptions of release(), e.g. std::logic_error if the privacy budget refuses. Also throws
  /// std::logic_error if the gate has a release observer, because the released value could not be
  /// passed to it.
  std::int64_t draw_noise(const GaussianRelease& release);

  /// Charges a release to the privacy budget. Returns whether the budget allows it. release() also
  /// charges, but throws if the budget does not suffice; a caller that can do without the release
  /// therefore calls this first. A release with an index is charged only once.
  [[nodiscard]] bool admit(const Charge& charge) { return authority_.admit(charge); }

  /// Returns the random stream for draws other than the noise of sums, such as batches and noisy
  /// choices. number: index of the draw, e.g. the step; with the key and `purpose` it determines
  /// the random numbers.
  RandomStream stream(Stream purpose, std::uint64_t number) const {
    return {generator_, key_.key(), purpose, number};
  }

  /// Returns the object that receives all released values of this training; null if there is none.
  ReleaseObserver* release_observer() const { return release_observer_; }

  /// Returns the releases that this gate has made, in order, without those before an interruption.
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
  std::map<Stream, SharedKey> other_keys_;  ///< keys set by use_key()
  ReleaseAuthority& authority_;
  ReleaseObserver* release_observer_;
  std::vector<Released> released_;
  std::vector<privacy::NoisyValue> listed_;
  std::set<std::pair<Stream, std::uint64_t>> used_;
};

/// Returns a grid g for a release with Gaussian noise: a power of two, of which the sums and the
/// noise are integer multiples. g is `coarsest`, a power of two of which the sums are integer
/// multiples, unless noise_std / g would then be below 2^20; in that case it is a smaller power of
/// two. noise_std / g is above its maximum of 2^40 only if noise_std is above 2^40 coarsest. Throws
/// std::invalid_argument unless noise_std is finite and > 0.
double noise_grid(double noise_std, double coarsest);

/// Returns sum / grid as an integer, modulo 2^64. grid: a power of two. A sum that is not an
/// integer multiple is rounded to the nearest one; a sum that is not finite becomes 0.
std::int64_t units_of(double sum, double grid);
std::vector<std::int64_t> units_of(std::span<const double> sums, double grid);

}  // namespace cudp
