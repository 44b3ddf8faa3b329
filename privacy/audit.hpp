#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

// Lower bounds on epsilon from one run of a mechanism. Before the run each of m canaries is put
// among its data or left out, by a fair coin of its own; afterwards an attacker, who sees all that
// was released, guesses for some of them which it was. How many guesses are right bounds from
// below what the mechanism tells of an example that is added or removed.
//
// How many guesses are made must be fixed before the coins are looked at, or follow from what was
// released.

/// Throw std::invalid_argument unless correct <= made <= canaries, canaries > 0.
struct Guesses {
  std::uint64_t canaries = 0;  ///< m
  std::uint64_t made = 0;      ///< the attacker abstains on the others
  std::uint64_t correct = 0;   ///< of those made
};

/// An (epsilon, delta)-DP mechanism lets any attacker be right so often with at most this
/// probability; at most 1. epsilon >= 0, delta in [0, 1].
/// Source: Steinke, Nasr, Jagielski 2023 (arXiv:2305.08846), Theorem 5.2 for guesses with
/// abstentions (Corollary 5.4).
double p_value(const Guesses& guesses, double epsilon, double delta);

/// A lower bound on epsilon at delta, which holds with probability 1 - error, whatever the
/// mechanism. Nats, >= 0, rounded down; error in (0, 1), delta in [0, 1].
double epsilon_lower(const Guesses& guesses, double delta, double error);

/// A trade-off curve, as audits ask for it: the least probability that an event has on a data set
/// whose probability on a neighbour is p, in [0, 1]. Nondecreasing and convex; the same whichever
/// of the two has the example more.
using LeastOther = std::function<double(double p)>;

/// The curve of Gaussian noise of standard deviation 1 / mu on what one example moves by 1; mu >=
/// 0.
LeastOther gaussian_trade_off(double mu);

/// The curve of everything that is (epsilons[i], deltas[i])-DP for all i at once; equally many of
/// both.
LeastOther trade_off(std::span<const double> epsilons, std::span<const double> deltas);

/// Whether a mechanism with this trade-off curve lets any attacker be right so often with less than
/// probability `error`, in (0, 1).
///
/// Source: Mahloujifar, Melis, Chaudhuri 2024 (arXiv:2410.22235), Theorem 3.2 and its algorithm
/// with abstentions. With p_i the probability of i right guesses of c, k the least other, and
///   R_i = sum_{l >= i} l p_l / m,  H_i = sum_{l >= i} (c - l) p_l / m,
/// a mechanism has H_{i-1} >= k(R_i) for all i. Of all p with P(at least v right) = error, the one
/// that has p_v = error and below it no more than these inequalities ask for is the smallest
/// (moving mass to fewer right guesses keeps them); where even that adds up to more than 1 there is
/// none.
bool refutes(const Guesses& guesses, const LeastOther& least_other, double error);

/// A lower bound on epsilon at delta, in (0, 1), of a mechanism whose trade-off curve is that of
/// Gaussian noise; it holds with probability 1 - error. Nats, >= 0, rounded down.
double gaussian_epsilon_lower(const Guesses& guesses, double delta, double error);

/// The bound where the curve is that of `releases` with all their noise multiplied by one number,
/// which is found to 1 %; canaries are units of `group` examples. Throws std::domain_error where
/// one of them is not Gaussian noise on a sum.
double epsilon_lower(const Guesses& guesses, std::span<const Release> releases, double delta,
                     double error, std::uint64_t group = 1);

}  // namespace cudp::privacy
