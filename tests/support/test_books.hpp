#pragma once
// Release authorities for gates that are tested without a ledger.
#include <functional>
#include <set>
#include <utility>

#include "runtime/gate/gate.hpp"

namespace cudp {

/// Returns an authority that admits everything.
inline ReleaseAuthority& all_paid() {
  class AllPaid : public ReleaseAuthority {
   public:
    bool admit(const Charge&) override { return true; }
  };
  static AllPaid books;
  return books;
}

/// Authority that calls a function of the test for every numbered release, once.
class AskingBooks : public ReleaseAuthority {
 public:
  using Ask = std::function<bool(std::uint64_t number, const privacy::Mechanism& release)>;

  explicit AskingBooks(Ask ask) : ask_(std::move(ask)) {}
  bool admit(const Charge& charge) override {
    if (admitted_.contains(charge.number.value())) return true;
    if (!ask_(*charge.number, charge.mechanism)) return false;
    admitted_.insert(*charge.number);
    return true;
  }

 private:
  Ask ask_;
  std::set<std::uint64_t> admitted_;
};

}  // namespace cudp
