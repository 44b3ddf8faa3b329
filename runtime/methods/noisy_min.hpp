#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp {

class Witness;  // runtime/gate/witness.hpp

enum class SelectionNoise { gumbel, laplace };

/// The place of the smallest of `scores`, each with independent noise of scale
/// sensitivity / epsilon: of -score + noise the largest. Gumbel noise is skewed, so its sign
/// matters: the smallest score + Gumbel would be another mechanism, with up to (k - 1) times the
/// loss for k scores. scores not empty, finite.
///
/// Gumbel: noisy_least's first. Laplace: computed in double from 52 bits each, words 0 .. 2 k - 1
/// of the stream: what is proved of it is proved for real numbers only.
///
/// witness: who is shown the choice, or null.
std::size_t noisy_min(std::span<const double> scores, double sensitivity, double epsilon,
                      SelectionNoise noise, const RandomStream& stream, Witness* witness = nullptr);

/// The places of the `count` least (or of all, where there are fewer), with Gumbel noise as above,
/// in order: `count` noisy minima one after another, each among those not chosen before it (Durfee,
/// Rogers 2019, arXiv:1905.04273, Lemma 4.2).
///
/// Exactly so: scores are the real numbers that they are, and Gumbel noise is -ln(-ln U) of reals U
/// in (0, 1), of which as many bits are drawn as the order needs. With r = epsilon / sensitivity,
/// rounded down, it is the order of ln E_i + r score_i, E_i = -ln U_i; so P(i first) is
/// proportional to exp(-r score_i), to the last bit. Nothing but the order leaves.
///
/// Score i's U has words 2 i and 2 i + 1 of the stream for its first 64 bits, and words
/// 2 k + 24 i .. 2 k + 24 i + 23 for 768 more, most significant first.
std::vector<std::size_t> noisy_least(std::span<const double> scores, std::size_t count,
                                     double sensitivity, double epsilon, const RandomStream& stream,
                                     Witness* witness = nullptr);

/// Words of a U in noisy_order.
inline constexpr std::size_t kFirstDigits = 2;
inline constexpr std::size_t kAllDigits = 26;

/// The order of ln E_i + rate score_i, `count` of it, from the first digits of every U
/// [scores.size(), kFirstDigits], in double with a bound on its error; empty where that decides
/// nothing.
std::optional<std::vector<std::size_t>> quick_noisy_order(std::span<const double> scores,
                                                          std::size_t count, double rate,
                                                          std::span<const std::uint32_t> digits);
/// The choice made from digits [scores.size(), kAllDigits] in multiple precision. Throws
/// std::runtime_error where they leave it undecided, which has probability below 2^-100.
std::vector<std::size_t> exact_noisy_order(std::span<const double> scores, std::size_t count,
                                           double rate, std::span<const std::uint32_t> digits);

/// The mechanism of noisy_min where one example more makes every score larger, by between 0 and the
/// sensitivity (losses that are clipped and not negative: then scale 1 / epsilon suffices in place
/// of 2 / epsilon).
///
/// Gumbel: P(i) is proportional to exp(-epsilon score_i / sensitivity), the exponential mechanism;
/// its privacy loss lies in an interval of length epsilon, which is epsilon^2/8-zCDP (Cesar, Rogers
/// 2021, arXiv:2004.07223). Laplace: epsilon-DP, all that is known of it.
privacy::Mechanism noisy_min_mechanism(double epsilon, SelectionNoise noise);

/// The largest epsilon whose noisy_min costs at most rho: sqrt(8 rho), or sqrt(2 rho).
double noisy_min_epsilon(double rho, SelectionNoise noise);

}  // namespace cudp
