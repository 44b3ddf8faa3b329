#pragma once
#include <span>
#include <vector>

#include "privacy/ledger.hpp"

namespace cudp::privacy {

/// The privacy spent so far by releases of which each may be chosen by looking at those before,
/// without a budget to stay within: epsilon() is right at every moment at once, also at one that
/// was chosen by looking at it. With probability 1 - delta over the releases, the privacy loss of
/// the first n stays below epsilon after n, for all n; so stopping anywhere is (epsilon, delta)-DP
/// for adding or removing one example.
///
/// At one order the exponential of (order - 1) (loss - divergences so far) is a supermartingale,
/// which by Ville's inequality exceeds 1/delta with probability delta at most: the loss stays below
/// the sum of divergences plus log(1/delta)/(order - 1). Over several orders, fixed ahead, delta is
/// shared out evenly. (Whitehouse, Ramdas, Rogers, Wu 2023, arXiv:2203.05481; Feldman, Zrnic 2021,
/// arXiv:2008.11193.) It shows more than a filter's epsilon: use that where the budget is known.
class Odometer {
 public:
  /// Throws std::invalid_argument unless delta is in (0, 1) and every order > 1. The default orders
  /// are 1.5, 2, 3, 4, 6, 8, ... 512.
  explicit Odometer(double delta, std::span<const double> orders = {});

  /// Counts the releases, before they are made. Throws std::invalid_argument for mechanisms out of
  /// range, and std::domain_error for those without a bound, or with a delta of their own.
  void charge(const Release& releases);
  /// All that a ledger has charged: what an odometer shows again after a crash.
  void charge(const Ledger& ledger);

  /// In nats, rounded up. 0 where nothing was released; +infinity where no order is finite.
  double epsilon() const;
  double delta() const { return delta_; }

 private:
  double delta_;
  std::vector<double> orders_;
  std::vector<double> divergence_;  ///< so far, by order
  double charges_ = 0.0;            ///< additions, each of which may round
  bool nothing_ = true;
};

}  // namespace cudp::privacy
