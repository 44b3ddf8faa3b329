#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp {

class ReleaseObserver;  // runtime/gate/release_observer.hpp

enum class SelectionNoise { gumbel, laplace };

/// Report-noisy-min, for minimising: returns the index i with the largest noise_i - score_i, where
/// the noise_i are independent random numbers with scale sensitivity / epsilon. (Gumbel noise is
/// skewed, so its sign matters: choosing the smallest score_i + noise_i would be another mechanism,
/// with up to k - 1 times the privacy loss for k scores.) Requires that scores are finite and not
/// empty.
///
/// With Gumbel noise the result is the first index that noisy_smallest() returns, and exact.
/// Laplace noise is computed in double from 52 bits each, words 0 .. 2 k - 1 of the stream, so its
/// privacy proof holds for real numbers only.
///
/// stream: random stream of the noise. release_observer: receives the returned index, and may
/// replace it; null if there is none.
std::size_t noisy_min(std::span<const double> scores, double sensitivity, double epsilon,
                      SelectionNoise noise, const RandomStream& stream,
                      ReleaseObserver* release_observer = nullptr);

/// Returns the indices of the `count` smallest scores (or of all, if there are fewer) after adding
/// Gumbel noise as in noisy_min, in order. This is the same as `count` calls of noisy_min one after
/// another, each with the scores not chosen before (Durfee, Rogers 2019, arXiv:1905.04273, Lemma
/// 4.2).
///
/// The result is exact, not subject to rounding: scores count as real numbers, and Gumbel noise is
/// -ln(-ln U) of real numbers U in (0, 1), of which as many bits are drawn as are needed to find
/// the order. With r = epsilon / sensitivity, rounded down, it is the order of ln E_i + r score_i,
/// where E_i = -ln U_i. So P(i first) is proportional to exp(-r score_i), to the last bit. Only the
/// order is released.
///
/// U of score i has words 2 i and 2 i + 1 of the stream as its first 64 bits, and words 2 k + 24 i
/// .. 2 k + 24 i + 23 (for k scores) as 768 more, most significant first.
std::vector<std::size_t> noisy_smallest(std::span<const double> scores, std::size_t count,
                                        double sensitivity, double epsilon,
                                        const RandomStream& stream,
                                        ReleaseObserver* release_observer = nullptr);

/// Numbers of random 32-bit words per score: the digits of a uniform U in (0, 1).
/// quick_noisy_order() reads only the first kFirstDigits words, exact_noisy_order() all kAllDigits.
inline constexpr std::size_t kFirstDigits = 2;
inline constexpr std::size_t kAllDigits = 26;

/// Returns the indices of the `count` smallest of the noisy scores ln E_i + rate score_i, in
/// ascending order of noisy score, where E_i = -ln U_i and U_i are uniform random numbers in (0,
/// 1). digits: first words of every U_i, [scores.size(), kFirstDigits]. Computes in double with a
/// bound on the error; returns nullopt if, within that bound, another order is possible.
std::optional<std::vector<std::size_t>> quick_noisy_order(std::span<const double> scores,
                                                          std::size_t count, double rate,
                                                          std::span<const std::uint32_t> digits);
/// Returns the same indices as quick_noisy_order(), but computes in multiple precision from all
/// digits of every U_i, [scores.size(), kAllDigits]. Throws std::runtime_error if these digits do
/// not determine the order, which has probability below 2^-100.
std::vector<std::size_t> exact_noisy_order(std::span<const double> scores, std::size_t count,
                                           double rate, std::span<const std::uint32_t> digits);

/// Returns the mechanism with which noisy_min is charged. Requires that adding an example increases
/// every score by between 0 and the sensitivity, as for losses that are clipped and not negative;
/// noise of scale 1 / epsilon then suffices instead of 2 / epsilon.
///
/// Gumbel: P(i) is proportional to exp(-epsilon score_i / sensitivity), the exponential mechanism.
/// Its privacy loss lies in an interval of length epsilon, which gives epsilon^2/8-zCDP (Cesar,
/// Rogers 2021, arXiv:2004.07223). Laplace: epsilon-DP, and no better bound is known.
privacy::Mechanism noisy_min_mechanism(double epsilon, SelectionNoise noise);

/// Returns the largest argument `epsilon` with which a call of noisy_min() has a zCDP cost of at
/// most rho: sqrt(8 rho) for Gumbel noise, sqrt(2 rho) for Laplace noise.
double noisy_min_epsilon(double rho, SelectionNoise noise);

}  // namespace cudp
