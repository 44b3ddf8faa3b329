#pragma once
#include <span>

#include "privacy/rdp/dominating_pair.hpp"

namespace cudp::privacy {

/// Returns an upper bound on the Renyi divergence of order alpha of a mechanism with these
/// dominating pairs: the divergence of `first` from `second`, in nats, rounded up (relative 1e-11).
/// If there are several pairs, a public coin chooses one, so their moments are averaged. alpha > 1,
/// finite, integer or fractional. +infinity if the value exceeds double. Throws
/// std::invalid_argument on an order out of range.
///
/// A pair that dominates in every (epsilon, delta) dominates in every f-divergence, because those
/// are mixtures of hockey-stick divergences (Zhu, Dong, Wang 2022, arXiv:2106.08567). The moment
/// E_second[(first / second)^alpha] is integrated numerically; its integrand is positive, so
/// nothing cancels. If that takes too long, it is bounded by joint convexity (van Erven, Harremoes
/// 2014, arXiv:1206.2459, Theorem 13): by the mean of the moments of matching components of the two
/// mixtures.
double rdp_of_pairs(std::span<const GaussianPair> pairs, double alpha);

}  // namespace cudp::privacy
