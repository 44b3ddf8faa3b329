#include "runtime/gate/privacy_budget.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace cudp {

PrivacyBudget::PrivacyBudget(privacy::Ledger ledger, Save save, std::vector<UsedCharge> used)
    : ledger_(std::move(ledger)), used_charges_(std::move(used)), save_(std::move(save)) {
  if (ledger_.budget()) filter_.emplace(ledger_);
}

void PrivacyBudget::plan(privacy::Ledger ledger) {
  for (const privacy::Release& before : ledger_.releases())
    if (!ledger.holds(before))
      throw std::logic_error("the plan's ledger lacks a release that was made before it");
  if (ledger_.split() && ledger.split() != ledger_.split())
    throw std::logic_error(
        "the plan splits the budget in other parts than the count before it did");
  filter_.reset();
  if (ledger.budget()) filter_.emplace(ledger);
  ledger_ = std::move(ledger);
  save_(ledger_);
}

bool PrivacyBudget::admit(const Charge& charge) {
  if (!charge.number) return take(charge);
  const privacy::Release release{charge.mechanism, charge.count};
  return authorise(*charge.number, {&release, 1});
}

bool PrivacyBudget::take(const Charge& charge) {
  if (ledger_.has_fresh_key()) return false;
  std::vector<UsedCharge> used = used_charges_;
  const auto same = [&](const UsedCharge& t) {
    return t.mechanism == charge.mechanism && t.parts == charge.parts;
  };
  auto at = std::find_if(used.begin(), used.end(), same);
  if (at == used.end()) at = used.insert(at, {charge.mechanism, charge.parts, 0});
  at->count += charge.count;
  std::uint64_t whole = 0;  // a use of which only a part was made counts as a whole one
  for (const UsedCharge& t : used)
    if (t.mechanism == charge.mechanism) whole += (t.count + t.parts - 1) / t.parts;
  if (!ledger_.holds({charge.mechanism, whole})) return false;
  used_charges_ = std::move(used);
  return true;
}

bool PrivacyBudget::authorise(std::uint64_t number, const privacy::Mechanism& mechanism) {
  const privacy::Release one{mechanism, 1};
  return authorise(number, {&one, 1});
}

bool PrivacyBudget::authorise(std::uint64_t first, std::span<const privacy::Release> releases) {
  const std::uint64_t before = ledger_.authorised_until();
  std::optional<privacy::Filter> filter = filter_;
  for (const privacy::Release& release : releases) {
    const std::uint64_t end = first + release.count;
    if (!filter)
      ledger_.authorise(first, end, release.mechanism);
    else if (!filter->authorise(first, end, release.mechanism))
      return false;
    first = end;
  }
  if (filter) {
    filter_ = std::move(filter);
    ledger_ = filter_->ledger();
  }
  if (ledger_.authorised_until() != before) save_(ledger_);
  return true;
}

void PrivacyBudget::fresh_key(std::uint64_t number) {
  ledger_.fresh_key(number);
  if (filter_) filter_.emplace(ledger_);
}

}  // namespace cudp
