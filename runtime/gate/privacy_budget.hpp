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

/// A run's ledger, and who is asked before anything is released. Releases are numbered; what one
/// draws is a function of the random key and its number, so that repeating it under one key
/// releases nothing new and is not charged again (privacy/ledger.hpp). Where the ledger has a
/// budget, a filter decides.
class PrivacyBudget : public ReleaseAuthority {
 public:
  /// The unnumbered charges that have been consumed, for a checkpoint.
  struct Taken {
    privacy::Mechanism mechanism;
    std::uint64_t parts = 1;
    std::uint64_t count = 0;  ///< in parts
    bool operator==(const Taken&) const = default;
  };
  /// Makes the ledger durable.
  using Save = std::function<void(const privacy::Ledger&)>;

  /// taken: by the run until now. Throws std::invalid_argument where the ledger has spent more than
  /// its budget.
  PrivacyBudget(privacy::Ledger ledger, Save save, std::vector<Taken> taken = {});

  /// `ledger` takes the place of one that says no more than what was released before there was a
  /// plan. Throws std::invalid_argument as the constructor does, std::logic_error where `ledger`
  /// does not hold all of that.
  void plan(privacy::Ledger ledger);

  /// An unnumbered release consumes one of the ledger's unnumbered charges of the same mechanism. A
  /// fresh key leaves none of them: what the old key drew of them cannot be told from what it did
  /// not.
  bool admit(const Charge& charge) override;
  /// Whether release `number` may be made. Charged and durable when it says yes.
  [[nodiscard]] bool authorise(std::uint64_t number, const privacy::Mechanism& mechanism);
  /// Approves several releases, numbered from `first` on: all or none.
  [[nodiscard]] bool authorise(std::uint64_t first, std::span<const privacy::Release> releases);

  /// The generator's key was lost: releases from `number` on are charged again when they are made
  /// again.
  void fresh_key(std::uint64_t number);

  const privacy::Ledger& ledger() const { return ledger_; }
  const std::vector<Taken>& taken() const { return taken_; }
  /// Null where the plan alone stays within the budget.
  const privacy::Filter* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// Divergence that the filter has left; 0 without one.
  double left() const { return filter_ ? filter_->limit() * filter_->remaining() : 0.0; }

 private:
  bool take(const Charge& charge);

  privacy::Ledger ledger_;
  std::optional<privacy::Filter> filter_;
  std::vector<Taken> taken_;
  Save save_;
};

}  // namespace cudp
