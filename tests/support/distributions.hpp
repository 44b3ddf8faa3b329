#pragma once
// Probability distributions for tests of randomness. Only distributions.cpp includes Boost's
// headers, because they take a second to compile.

namespace cudp::law {

double normal_below(double x);           ///< P(Z <= x)
double normal_quantile_above(double p);  ///< x with P(Z > x) = p

/// Return P(K = k), P(K <= k) and P(K > k), for K successes in n trials of probability p.
double binomial_is(double n, double p, double k);
double binomial_at_most(double n, double p, double k);
double binomial_above(double n, double p, double k);

double chi_squared_above(double degrees, double x);
double chi_squared_quantile(double degrees, double p);        ///< x with P(X <= x) = p
double chi_squared_quantile_above(double degrees, double p);  ///< x with P(X > x) = p

double beta_quantile(double a, double b, double p);

}  // namespace cudp::law
