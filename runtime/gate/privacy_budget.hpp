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

/// The privacy budget of a run: its ledger of charges, and the approval of each release. Releases
/// are numbered. The noise of a release is a function of the random key and its number, so
/// repeating the release under the same key reveals nothing new and is not charged again
/// (privacy/ledger.hpp). If the ledger states a budget, a privacy filter decides whether a release
/// is approved.
class PrivacyBudget : public ReleaseAuthority {
 public:
  /// Number of uses of a charge that has no release number, such as the noisy number of examples.
  /// Checkpoints store it, so that a resumed run does not use a charge twice.
  struct UsedCharge {
    privacy::Mechanism mechanism;
    std::uint64_t parts = 1;
    std::uint64_t count = 0;  ///< number of parts used
    bool operator==(const UsedCharge&) const = default;
  };
  /// Callback that stores the ledger durably.
  using Save = std::function<void(const privacy::Ledger&)>;

  /// used_charges: uses of the charges without a number so far. Throws std::invalid_argument if the
  /// ledger has spent more than its budget.
  PrivacyBudget(privacy::Ledger ledger, Save save, std::vector<UsedCharge> used_charges = {});

  /// Replaces the ledger, which has only the releases made before the training was planned, by
  /// `ledger`. Throws std::invalid_argument as the constructor does, and std::logic_error if
  /// `ledger` lacks one of those releases.
  void plan(privacy::Ledger ledger);

  /// Approves a release. One without a number uses one of the ledger's charges of the same
  /// mechanism without a number. After a fresh key none of these is available, because it is
  /// unknown which of them the old key has used.
  bool admit(const Charge& charge) override;
  /// Returns whether release `number` may be made. If it may, it has been charged and the ledger
  /// has been stored durably.
  [[nodiscard]] bool authorise(std::uint64_t number, const privacy::Mechanism& mechanism);
  /// Returns whether all of these consecutive releases, numbered from `first`, may be made;
  /// approves all or none. If so, they have been charged and the ledger has been stored durably.
  [[nodiscard]] bool authorise(std::uint64_t first, std::span<const privacy::Release> releases);

  /// Records that the random key was lost: releases from `number` on are charged again when they
  /// are repeated.
  void fresh_key(std::uint64_t number);

  const privacy::Ledger& ledger() const { return ledger_; }
  const std::vector<UsedCharge>& used_charges() const { return used_charges_; }
  /// Returns the privacy filter that enforces the budget; null if the releases are fixed in advance
  /// to stay within it.
  const privacy::Filter* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// Returns what is left of the filter's budget, as a Renyi divergence or zCDP's rho [nats]; 0 if
  /// there is no filter.
  double left() const { return filter_ ? filter_->limit() * filter_->remaining() : 0.0; }

 private:
  bool take(const Charge& charge);

  privacy::Ledger ledger_;
  std::optional<privacy::Filter> filter_;
  std::vector<UsedCharge> used_charges_;
  Save save_;
};

}  // namespace cudp
