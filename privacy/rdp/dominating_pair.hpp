#pragma once
#include <cstdint>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// A one-dimensional mixture of Gaussians with the same standard deviation: sum over i of
/// weights[i] N(centres[i], sigma^2). Centres are ascending, weights > 0.
struct ScalarMixture {
  std::vector<double> centres;
  std::vector<double> weights;
};

/// A pair of distributions on the real line that bounds a mechanism: the output on a data set and
/// on a neighbour. The privacy loss is log(first density / second density) at a point drawn from
/// `first`. It is monotone in the point.
struct GaussianPair {
  /// Probability that this pair is used, if a public coin chooses one of several pairs for each
  /// release.
  double probability = 1.0;
  ScalarMixture first;
  ScalarMixture second;
  double sigma = 0.0;
};

/// Returns pairs of one-dimensional Gaussian mixtures that dominate one release of a Gaussian
/// mechanism for groups of up to k changes: every (epsilon, delta) that holds for them holds for
/// the release, and they compose adaptively (Zhu, Dong, Wang 2022, arXiv:2106.08567, Theorem 10).
/// If examples are added, `second` is the mixture; if they are removed, `first` is. The other
/// distribution of the pair is N(0, sigma^2). The mixture's centres, with their weights:
///
/// Gaussian: k. Poisson samples: 0 .. k, distributed as Binomial(k, q) (Ganesh 2024,
/// arXiv:2401.10294, Theorem 3.1). Fixed size: twice the number of marked ones among `batch`
/// examples drawn from n + k, k of which are marked (hypergeometric; Theorem 3.3 there).
/// GaussianMixture, k = 1: its sensitivities (Choquette-Choo, Ganesh, Steinke, Thakurta 2024,
/// arXiv:2310.15526, Corollary 4.7). Truncated Poisson, k = 1: a public coin determines whether the
/// batch is full without the example; if it is, the example displaces another and changes the sum
/// by 2 (Chua et al. 2024, arXiv:2411.04205).
///
/// If k examples are replaced, a pair is known for two mechanisms. For Gaussian, the pair has
/// sensitivity 2 k. For PoissonGaussian with k = 1 it is (1-q) N(0) + q N(1) against (1-q) N(0) + q
/// N(-1), for this reason. Let the replaced gradients be u and v, in the unit ball. For a >= 1 the
/// excess P - a Q is q (N(u) - (a N(v) + b N(0))) with b = (1-q)(a-1)/q: one Gaussian against a
/// mixture of Gaussians at distances |v-u| <= 2 and |u| <= 1. It is largest if they are 2 and 1 on
/// one line (the corollary above). For a < 1 the same holds with P and Q exchanged.
///
/// Throws std::invalid_argument for a mechanism that is out of range or k = 0, std::domain_error if
/// no such pair is known: mechanisms without Gaussian noise, k > 1 for mixtures and truncated
/// batches, other mechanisms than these two if examples are replaced.
std::vector<GaussianPair> dominating_pairs(const Mechanism& mechanism, Change change,
                                           std::uint64_t k);

}  // namespace cudp::privacy
