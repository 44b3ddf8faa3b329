#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp {

enum class SelectionNoise { gumbel, laplace };

/// The place of the smallest of `scores`, each with independent noise of scale
/// sensitivity / epsilon: of -score + noise the largest. Gumbel noise is skewed, so its sign
/// matters: the smallest score + Gumbel would be another mechanism, with up to (k - 1) times the
/// loss for k scores. Draws words 0 .. 2 k - 1 of the stream. scores not empty, finite.
std::size_t noisy_min(std::span<const double> scores, double sensitivity, double epsilon,
                      SelectionNoise noise, const RandomStream& stream);

/// The places of the `count` least (or of all, where there are fewer), with Gumbel noise as above,
/// in order: `count` noisy minima one after another, each among those not chosen before it (Durfee,
/// Rogers 2019, arXiv:1905.04273, Lemma 4.2).
std::vector<std::size_t> noisy_least(std::span<const double> scores, std::size_t count,
                                     double sensitivity, double epsilon,
                                     const RandomStream& stream);

/// What noisy_min releases where one example more makes every score larger, by between 0 and the
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
