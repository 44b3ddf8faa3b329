#pragma once

namespace cudp::privacy {

/// Returns the epsilon of a rho-zCDP mechanism at the given delta, in nats, rounded up, by
/// converting its Renyi divergence alpha * rho at the best order alpha. rho finite, >= 0; delta in
/// (0, 1); otherwise throws std::invalid_argument. rho = 0 gives 0. Source: Canonne, Kamath,
/// Steinke 2020 (arXiv:2004.00010), Proposition 12 and Corollary 13.
double epsilon_from_zcdp(double rho, double delta);

/// Returns the epsilon of a rho-zCDP mechanism by the classical conversion rho + 2 sqrt(rho
/// log(1/delta)), which is never smaller than epsilon_from_zcdp. Source: Bun, Steinke 2016
/// (arXiv:1605.02065), Proposition 1.3.
double epsilon_from_zcdp_classical(double rho, double delta);

/// Returns the largest rho whose epsilon_from_zcdp at this delta is within epsilon, to 1e-9
/// relative: the budget of a zCDP filter. epsilon finite, > 0; delta in (0, 1); otherwise throws
/// std::invalid_argument.
double zcdp_for(double epsilon, double delta);

/// Returns rho, in zero-concentrated DP, of one release with Gaussian noise and noise multiplier
/// sigma: 1 / (2 sigma^2), rounded up. sigma finite, > 0.
double zcdp_of_gaussian(double sigma);

/// Returns rho, in zero-concentrated DP, of an epsilon-DP release: epsilon tanh(epsilon / 2),
/// rounded up; at most epsilon^2 / 2, which is Bun, Steinke 2016, Proposition 1.4. epsilon >= 0,
/// +infinity allowed. Randomised response dominates (Kairouz, Oh, Viswanath 2015, arXiv:1311.0776),
/// with (alpha - 1) D_alpha = log cosh(epsilon sqrt(y)) - log cosh(epsilon / 2) for y = (alpha -
/// 1/2)^2. That is concave in y, so below its tangent at alpha = 1, and alpha (alpha - 1) = y -
/// 1/4.
double zcdp_of_pure(double epsilon);

}  // namespace cudp::privacy
