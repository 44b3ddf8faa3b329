#pragma once
#include <span>

#include "privacy/mechanism/mechanism.hpp"

// Judges of privacy/ that share no code with it: definitions, integrated by Gauss-Legendre in fifty
// digits, and closed forms.

namespace cudp::privacy::oracle {

/// Renyi divergence D_alpha(mu || mu0) of mu0 = N(0, sigma^2), mu = (1 - q) mu0 + q N(1, sigma^2):
/// the data set with the example against that without.
double rdp(double q, double sigma, double alpha);

/// D_alpha(mu0 || mu): the other way round.
double rdp_reverse(double q, double sigma, double alpha);

/// The series of Mironov, Talwar, Zhang 2019, section 3.3, summed as dp_accounting's
/// _compute_log_a_frac sums it: with log |C(alpha, i)|, though the binomial coefficients alternate
/// in sign for i > alpha. It exceeds the divergence at every fractional order.
double rdp_without_signs(double q, double sigma, double alpha);

/// Canonne, Kamath, Steinke 2020, Proposition 12, written out.
double epsilon_at(double alpha, double rdp, double delta);

/// Epsilon by one order of Gaussian releases, on Poisson samples or on everything;
/// divergence(q, sigma, alpha).
double epsilon_by(std::span<const Release> releases, double delta, double alpha,
                  double (*divergence)(double, double, double));

/// Exact delta of the Gaussian mechanism at epsilon: Balle, Wang 2018 (arXiv:1805.06530),
/// Theorem 8. A lower bound for every accountant.
double gaussian_delta(double sigma, double epsilon);

}  // namespace cudp::privacy::oracle
