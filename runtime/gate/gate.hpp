#pragma once
#include <cstddef>
#include <cstdint>
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

/// The ledger entry that a release is charged to.
struct Charge {
  privacy::Mechanism mechanism;
  /// Index of the release among those that are charged as a run goes on. Empty: it was charged
  /// before the first of them.
  std::optional<std::uint64_t> number;
  std::uint64_t count = 1;  ///< of releases, numbered from there on
  /// This release is one of `parts` that together count as one use of the mechanism. Only where
  /// `number` is empty.
  std::uint64_t parts = 1;

  bool operator==(const Charge&) const = default;
};

/// Approves each release before its noise is drawn (privacy_budget.hpp).
class ReleaseAuthority {
 public:
  ReleaseAuthority() = default;
  ReleaseAuthority(const ReleaseAuthority&) = delete;
  ReleaseAuthority& operator=(const ReleaseAuthority&) = delete;
  virtual ~ReleaseAuthority() = default;
  /// Whether it may be released: it is charged then, durably, or was under the same key before.
  [[nodiscard]] virtual bool admit(const Charge& charge) = 0;
};

/// The public properties of one release of the Gaussian mechanism, fixed before its sums are looked
/// at.
struct GaussianRelease {
  std::string_view name;  ///< of what is released, for people
  Stream purpose;         ///< with `step`: where the noise is drawn, for this release and no other
  std::uint64_t step;
  double grid;         ///< g, a power of two: the sums are whole multiples of it
  double noise_std;    ///< sigma, in the sums' unit; s = sigma / g in [2^16, 2^40]
  double sensitivity;  ///< what one example can move the sums by, in L2, in the same unit
  Charge charge;       ///< Gaussian, sampled or not; its sigma is at most noise_std / sensitivity

  bool operator==(const GaussianRelease&) const = default;
};

struct Released {
  GaussianRelease release;
  std::size_t dimension;

  bool operator==(const Released&) const = default;
};

class Witness;  // witness.hpp

/// The one place where the host adds Gaussian noise to private sums. What is released of sums S
/// (whole multiples of g) is
///   R = S + g K,   K_j the integer nearest to (sigma / g) Z_j (kernels/random/rounded_normal.hpp)
/// S is in g Z^d, so R = g round((S + sigma Z) / g): a function of the continuous Gaussian
/// mechanism's output and of public numbers, nothing else. So whatever is proved of that mechanism
/// holds of R, to the last bit, and nothing is added to epsilon or delta.
///
/// It asks the authority before it draws. Whoever draws noise elsewhere asks here first (admit): an
/// engine's steps, choices by other noise; and shows what leaves to this gate's witness.
class Gate {
 public:
  /// authority and witness outlive the gate. earlier: what the run had released when it was
  /// interrupted. witness: null for none.
  Gate(Generator generator, SharedKey key, ReleaseAuthority& authority,
       std::vector<privacy::NoisyValue> earlier = {}, Witness* witness = nullptr);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() = default;

  /// R for sums [d] in units of g. S / g + K is taken modulo 2^64 in two's complement, which is a
  /// function of R; so is the rounding of what is returned to double.
  ///
  /// Throws std::invalid_argument where g is no power of two, s not in [2^16, 2^40], the
  /// sensitivity not positive, or there are no sums; std::logic_error where the authority does not
  /// admit it, where there is less noise than it was charged as, and where this gate has released
  /// under that purpose and step before: the same noise on two sums tells their difference.
  std::vector<double> release(const GaussianRelease& release, std::span<const std::int64_t> sums);
  double release(const GaussianRelease& release, std::int64_t sum);

  /// K of a release of one sum, for an engine that adds it where the sum is made, and lets nothing
  /// of the sum out but S / g + K modulo 2^64. It counts as released here. The same refusals; not
  /// for a gate with a witness, which is to be shown what leaves.
  std::int64_t draw_noise(const GaussianRelease& release);

  /// Whether a release may be made. Whoever can go on without it asks first; release asks again.
  [[nodiscard]] bool admit(const Charge& charge) { return authority_.admit(charge); }

  /// For what is drawn beside it: batches, choices.
  RandomStream stream(Stream purpose, std::uint64_t number) const {
    return {generator_, key_.key(), purpose, number};
  }

  /// Who is shown what leaves this gate's training, or null.
  Witness* witness() const { return witness_; }

  /// The releases of this gate, in order.
  const std::vector<Released>& released() const { return released_; }
  /// The releases of the run, in order; equal neighbours are one.
  const std::vector<privacy::NoisyValue>& listed() const { return listed_; }

 private:
  void admit_once(const GaussianRelease& release, std::size_t dimension);
  void list(const GaussianRelease& release, std::size_t dimension);

  Generator generator_;
  SharedKey key_;
  ReleaseAuthority& authority_;
  Witness* witness_;
  std::vector<Released> released_;
  std::vector<privacy::NoisyValue> listed_;
  std::set<std::pair<Stream, std::uint64_t>> used_;
};

/// The grid for sums that are whole multiples of `coarsest`, a power of two: that one, or a finer
/// one where s would be below 2^20. The noise is then a million steps of the grid wide, and s out
/// of range only above 2^40 coarsest. Throws std::invalid_argument unless noise_std is finite and >
/// 0.
double noise_grid(double noise_std, double coarsest);

/// A whole multiple of `grid`, a power of two, in units of it, modulo 2^64: exact. What is no
/// multiple goes to the nearest, what is not finite to 0.
std::int64_t units_of(double sum, double grid);
std::vector<std::int64_t> units_of(std::span<const double> sums, double grid);

}  // namespace cudp
