#pragma once
#include <cstdint>
#include <vector>

namespace cudp::privacy {

/// Returns the binomial probabilities P(J = j) for j = 0..k, J ~ Binomial(k, q). Their relative
/// error is a few times k roundings.
std::vector<double> binomial_weights(std::uint64_t k, double q);

/// Returns the hypergeometric probabilities P(J = j) for j = 0..k, where J is the number of black
/// balls among `draws` balls drawn without replacement from white + k, of which k are black.
std::vector<double> hypergeometric_weights(std::uint64_t draws, std::uint64_t white,
                                           std::uint64_t k);

/// Returns the upper tail P(J >= min_count), J ~ Binomial(n, q), rounded up by at most 1e-9 of its
/// value.
double binomial_tail(std::uint64_t n, double q, std::uint64_t min_count);

}  // namespace cudp::privacy
