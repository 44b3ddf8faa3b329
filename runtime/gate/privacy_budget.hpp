#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "privacy/filter.hpp"
#include "privacy/ledger.hpp"
#include "runtime/gate/gate.hpp"

namespace cudp {

/// The privacy budget of a run: keeps its ledger of charges, and approves each release. Releases
/// are numbered. A release's noise is a function of the run's random key and the release's number,
/// so repeating it under the same key reveals nothing new and is not charged again
/// (privacy/ledger.hpp). If the ledger states a budget, a privacy filter approves or refuses each
/// release.
class PrivacyBudget : public ReleaseAuthority {
 public:
  /// A mechanism that was charged in advance, without an index (e.g. for the noisy number of
  /// examples), and how many of its releases have been made. Checkpoints store it, so that a
  /// resumed run does not release more than was charged.
  struct UsedCharge {
    privacy::Mechanism mechanism;
    std::uint64_t parts = 1;
    std::uint64_t count = 0;  ///< number of parts of such releases that were made (Charge::parts)
    bool operator==(const UsedCharge&) const = default;
  };
  /// Callback that writes the ledger to disk. The write must be complete when it returns.
  using Save = std::function<void(const privacy::Ledger&)>;

  /// Makes the budget of a run that has made the charges in `ledger`. save: writes the ledger to
  /// disk. used_charges: the releases without an index that were made so far. Throws
  /// std::invalid_argument if the ledger has spent more than its budget.
  PrivacyBudget(privacy::Ledger ledger, Save save, std::vector<UsedCharge> used_charges = {});

  /// Replaces the ledger by `ledger`, and writes it to disk. `ledger` must be the current ledger
  /// with the charges of the planned training added. Throws std::invalid_argument if `ledger` has
  /// spent more than its budget, std::logic_error if it lacks a charge of the current ledger.
  void plan(privacy::Ledger ledger);

  /// Returns whether a release may be made, and charges it if necessary. For a release without an
  /// index there must be a charge for the same mechanism in the ledger that no earlier release has
  /// used. After fresh_key() no release without an index is admitted, because it is unknown which
  /// charges were used with the old key.
  bool admit(const Charge& charge) override;
  /// Charges the release with this index, unless it was charged with the current random key before.
  /// Returns true if the release may be made; the charge is then in the ledger on disk. Returns
  /// false if the budget does not suffice.
  [[nodiscard]] bool authorise(std::uint64_t number, const privacy::Mechanism& mechanism);
  /// Charges releases with consecutive indices, from `first` on, except those that were charged
  /// with the current random key before. Returns true if all may be made; the charges are then in
  /// the ledger on disk. Returns false, without charging any, if the budget does not suffice.
  [[nodiscard]] bool authorise(std::uint64_t first, std::span<const privacy::Release> releases);

  /// Records that the run continues with a new random key, because the old one is lost. If it then
  /// repeats releases with an index of at least `number`, their noise is new, so they are charged
  /// again.
  void fresh_key(std::uint64_t number);

  const privacy::Ledger& ledger() const { return ledger_; }
  const std::vector<UsedCharge>& used_charges() const { return used_charges_; }
  /// Returns the privacy filter that enforces the budget. Null if none is needed, because the
  /// releases were fixed in advance and stay within the budget.
  const privacy::Filter* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// Returns what is left of the filter's budget [nats], as a Renyi divergence or as rho (zCDP); 0
  /// if there is no filter.
  double left() const { return filter_ ? filter_->limit() * filter_->remaining() : 0.0; }

 private:
  bool take(const Charge& charge);

  privacy::Ledger ledger_;
  std::optional<privacy::Filter> filter_;
  std::vector<UsedCharge> used_charges_;
  Save save_;
};

}  // namespace cudp
