#pragma once
#include <functional>
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
///
/// A mechanism with a delta of its own is, but for an event of that probability, one without
/// (failure_of). Where the sum of these deltas stays within `failure`, which is fixed ahead, all is
/// (epsilon, delta + failure)-DP (Whitehouse et al. 2023, Theorem 1).
class Odometer {
 public:
  /// Throws std::invalid_argument unless delta is in (0, 1), every order > 1 and failure in [0, 1).
  /// The default orders are 1.5, 2, 3, 4, 6, 8, ... 512.
  explicit Odometer(double delta, std::span<const double> orders = {}, double failure = 0.0);

  /// Counts the releases, before they are made. Throws std::invalid_argument for mechanisms out of
  /// range, and std::domain_error for those without a bound, or whose delta exceeds what is left of
  /// `failure`; then it has counted nothing.
  void charge(const Release& releases);
  /// All that a ledger has charged: what an odometer shows again after a crash.
  void charge(const Ledger& ledger);
  /// Counts releases of which the divergence, given all before, is at most at(order), in nats; it
  /// may be infinite at some orders.
  void charge(const std::function<double(double order)>& at);
  /// Counts an event of this probability, after which nothing is promised: part of `failure`.
  void charge_failure(double probability);

  /// In nats, rounded up. 0 where nothing was released; +infinity where no order is finite.
  double epsilon() const;
  /// Without `failure`.
  double delta() const { return delta_; }

 private:
  void add(const std::vector<double>& divergence);

  double delta_;
  double failure_;  ///< that is left
  std::vector<double> orders_;
  std::vector<double> divergence_;  ///< so far, by order
  double charges_ = 0.0;            ///< additions, each of which may round
  bool nothing_ = true;
};

}  // namespace cudp::privacy
