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

/// Ledger of a run, and the authority that approves each of its releases. Releases are numbered.
/// The noise of a release is a function of the random key and its number, so repeating the release
/// under the same key reveals nothing new and is not charged again (privacy/ledger.hpp). If the
/// ledger has a budget, a filter decides.
class PrivacyBudget : public ReleaseAuthority {
 public:
  /// Number of uses of one unnumbered charge so far. Checkpoints store it.
  struct Taken {
    privacy::Mechanism mechanism;
    std::uint64_t parts = 1;
    std::uint64_t count = 0;  ///< number of parts used
    bool operator==(const Taken&) const = default;
  };
  /// Makes the ledger durable.
  using Save = std::function<void(const privacy::Ledger&)>;

  /// taken: the unnumbered charges that the run has used so far. Throws std::invalid_argument if
  /// the ledger has spent more than its budget.
  PrivacyBudget(privacy::Ledger ledger, Save save, std::vector<Taken> taken = {});

  /// Replaces the present ledger, which lists only releases made before the plan existed, by
  /// `ledger`. Throws std::invalid_argument as the constructor does, and std::logic_error if
  /// `ledger` does not contain all of those releases.
  void plan(privacy::Ledger ledger);

  /// Charges the release. An unnumbered one uses up one of the ledger's unnumbered charges of the
  /// same mechanism. After a fresh key none of them is available, because it is unknown which of
  /// them the old key has used.
  bool admit(const Charge& charge) override;
  /// Returns whether release `number` may be made. If it returns true, the release has been charged
  /// and the ledger has been saved.
  [[nodiscard]] bool authorise(std::uint64_t number, const privacy::Mechanism& mechanism);
  /// Approves consecutive releases, numbered from `first`: all of them or none.
  [[nodiscard]] bool authorise(std::uint64_t first, std::span<const privacy::Release> releases);

  /// Records that the generator's key was lost: releases from `number` on are charged again when
  /// they are repeated.
  void fresh_key(std::uint64_t number);

  const privacy::Ledger& ledger() const { return ledger_; }
  const std::vector<Taken>& taken() const { return taken_; }
  /// Returns the filter; null if the plan alone stays within the budget.
  const privacy::Filter* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// Returns the divergence that the filter has left [nats]; 0 if there is no filter.
  double left() const { return filter_ ? filter_->limit() * filter_->remaining() : 0.0; }

 private:
  bool take(const Charge& charge);

  privacy::Ledger ledger_;
  std::optional<privacy::Filter> filter_;
  std::vector<Taken> taken_;
  Save save_;
};

}  // namespace cudp
