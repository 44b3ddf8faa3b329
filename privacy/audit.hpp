#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

// Lower bounds on epsilon from one run of a mechanism. Before the run each of m canaries is
// included in its data or left out, by an independent fair coin. Afterwards an attacker, who sees
// everything released, guesses for some of them whether they were included. The number of correct
// guesses bounds from below how much the mechanism reveals about an example that is added or
// removed.
//
// The number of guesses must be fixed before the coins are revealed, or be a function of released
// values.

/// Result of an attack on one training that guesses which canaries (inserted examples) were
/// included. The functions below throw std::invalid_argument unless correct <= made <= canaries and
/// canaries > 0.
struct Guesses {
  /// Number of canaries: examples that were included with probability 1/2. m in the formulas of
  /// refutes().
  std::uint64_t canaries = 0;
  std::uint64_t made = 0;     ///< number of guesses; the attacker abstains on the other canaries
  std::uint64_t correct = 0;  ///< number of correct guesses
};

/// Returns an upper bound on the probability that an attacker on an (epsilon, delta)-DP mechanism
/// has at least guesses.correct correct guesses. It holds for every attacker; at most 1. epsilon >=
/// 0, delta in [0, 1]. Source: Steinke, Nasr, Jagielski 2023 (arXiv:2305.08846), Theorem 5.2 for
/// guesses with abstentions (Corollary 5.4).
double p_value(const Guesses& guesses, double epsilon, double delta);

/// Returns a lower bound on the epsilon, at delta, of the attacked mechanism, whatever mechanism it
/// is. The bound holds with probability 1 - error over the attack. Nats, >= 0, rounded down; error
/// in (0, 1), delta in [0, 1]. guesses: results of the attack.
double epsilon_lower(const Guesses& guesses, double delta, double error);

/// A trade-off curve of a mechanism, as audits use it: the smallest probability of an event on one
/// data set, given its probability p in [0, 1] on a neighbour. Nondecreasing and convex. The same
/// curve holds if the two data sets are exchanged.
using TradeOffCurve = std::function<double(double p)>;

/// Returns the trade-off curve of Gaussian noise with standard deviation 1 / mu on a value that one
/// example changes by at most 1; mu >= 0.
TradeOffCurve gaussian_trade_off(double mu);

/// Returns the trade-off curve that holds for every mechanism that is (epsilons[i], deltas[i])-DP
/// for all i. Requires equally many epsilons and deltas.
TradeOffCurve trade_off(std::span<const double> epsilons, std::span<const double> deltas);

/// Returns whether the guesses refute that the mechanism has this trade-off curve: if it had, every
/// attacker would have this many correct guesses with probability less than `error`, in (0, 1).
///
/// Source: Mahloujifar, Melis, Chaudhuri 2024 (arXiv:2410.22235), Theorem 3.2 and its algorithm
/// with abstentions. The attacker guesses for c of the m canaries, and is correct for v. Let p_i be
/// the probability of i correct guesses, k the trade-off curve, and
///   R_i = sum_{l >= i} l p_l / m,  H_i = sum_{l >= i} (c - l) p_l / m.
/// Every mechanism with this curve has H_{i-1} >= k(R_i) for all i. Among all p with P(at least v
/// correct) = error, the one with p_v = error and, for i < v, the least p_i that these inequalities
/// require, has the smallest sum (moving mass to fewer correct guesses preserves them). If even
/// that sum exceeds 1, no such p exists.
bool refutes(const Guesses& guesses, const TradeOffCurve& curve, double error);

/// Returns a lower bound on epsilon at delta, in (0, 1), that these guesses imply for a mechanism
/// with the trade-off curve of Gaussian noise, of unknown scale. The bound holds with probability 1
/// - error. Nats, >= 0, rounded down.
double gaussian_epsilon_lower(const Guesses& guesses, double delta, double error);

/// Returns a lower bound on epsilon at delta for mechanisms with the trade-off curve of `releases`,
/// in which the noise multipliers of all releases are multiplied by one unknown factor. The factor
/// is found to 1 %. The bound holds with probability 1 - error. Each canary is a group of `group`
/// examples. Throws std::domain_error if one of the releases is not Gaussian noise on a sum.
/// guesses: results of the attack.
double epsilon_lower(const Guesses& guesses, std::span<const Release> releases, double delta,
                     double error, std::uint64_t group = 1);

}  // namespace cudp::privacy
