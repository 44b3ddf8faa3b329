#pragma once
#include <functional>
#include <span>
#include <vector>

#include "privacy/ledger.hpp"

namespace cudp::privacy {

/// Privacy odometer: bounds the privacy that a sequence of releases has spent so far, without a
/// fixed budget. Each release may be chosen after looking at the earlier ones. With probability 1 -
/// delta over the releases, the privacy loss of the releases so far is below epsilon() at all times
/// simultaneously. So the sequence is (epsilon, delta)-DP for adding or removing one example
/// wherever it stops, even if the time to stop was chosen by looking at epsilon().
///
/// At one order the exponential of (order - 1) (loss - divergences so far) is a supermartingale,
/// which by Ville's inequality exceeds 1/delta with probability at most delta: the loss stays below
/// the sum of divergences plus log(1/delta)/(order - 1). With several orders, fixed in advance,
/// delta is divided evenly among them. (Whitehouse, Ramdas, Rogers, Wu 2023, arXiv:2203.05481;
/// Feldman, Zrnic 2021, arXiv:2008.11193.) The result is larger than a filter's epsilon: use a
/// filter if the budget is known.
///
/// A mechanism of which only (e, d)-DP is known (ApproximateDp) is e-DP except on an event of
/// probability d (failure_of). If the sum of these d stays within `failure`, which is fixed in
/// advance, all releases together are (epsilon, delta + failure)-DP (Whitehouse et al. 2023,
/// Theorem 1).
class Odometer {
 public:
  /// Starts with nothing spent. orders: the Renyi orders to use; by default 1.5, 2, 3, 4, 6, 8, ...
  /// 512. failure: limit on the sum of the deltas of mechanisms that have a delta of their own.
  /// Throws std::invalid_argument unless delta is in (0, 1), every order > 1 and failure in [0, 1).
  explicit Odometer(double delta, std::span<const double> orders = {}, double failure = 0.0);

  /// Charges the releases; must be called before they are made. Throws std::invalid_argument if the
  /// mechanism's numbers are out of range, and std::domain_error if no bound on its divergence is
  /// known or its delta exceeds the rest of the allowed `failure`; then nothing is charged.
  void charge(const Release& releases);
  /// Charges all releases of a ledger, to restore an odometer after a crash.
  void charge(const Ledger& ledger);
  /// Charges releases of any kind, given a bound on their Renyi divergence: at(order) [nats] for
  /// each order. The bound must hold whatever was released before. at() may return infinity.
  void charge(const std::function<double(double order)>& at);
  /// Charges an event on which the releases have no guarantee: its probability is subtracted from
  /// the constructor's `failure`.
  void charge_failure(double probability);

  /// Returns the epsilon spent so far, in nats, rounded up. It is 0 if nothing was released, and
  /// +infinity if none of the orders gives a finite one.
  double epsilon() const;
  /// Returns the constructor's delta. The whole guarantee is (epsilon(), delta() + failure)-DP.
  double delta() const { return delta_; }

 private:
  void add(const std::vector<double>& divergence);

  double delta_;
  double failure_;  ///< part of the constructor's `failure` that is left
  std::vector<double> orders_;
  std::vector<double> divergence_;  ///< sum of the divergences so far at each order
  double charges_ = 0.0;            ///< number of additions so far, each of which may round
  bool nothing_ = true;
};

}  // namespace cudp::privacy
