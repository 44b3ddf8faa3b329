#pragma once

namespace cudp::privacy {

/// Epsilon of a rho-zCDP mechanism at the given delta, in nats, rounded up, by the Renyi curve
/// alpha * rho at its best order. rho finite, >= 0; delta in (0, 1); otherwise throws
/// std::invalid_argument. rho = 0 costs nothing.
/// Source: Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12 and Corollary 13.
double epsilon_from_zcdp(double rho, double delta);

/// The classical conversion rho + 2 sqrt(rho log(1/delta)); never smaller than the one above.
/// Source: Bun, Steinke 2016 (arXiv:1605.02065), Proposition 1.3.
double epsilon_from_zcdp_classical(double rho, double delta);

/// The zCDP of one Gaussian release: 1 / (2 sigma^2), rounded up. sigma finite, > 0.
double zcdp_of_gaussian(double sigma);

}  // namespace cudp::privacy
