#pragma once
// Laws that tests of randomness compare with. Boost's headers stand in distributions.cpp alone:
// they take a second to read.

namespace cudp::law {

double normal_below(double x);           ///< P(Z <= x)
double normal_quantile_above(double p);  ///< x with P(Z > x) = p

/// Of the successes in n trials of probability p each.
double binomial_is(double n, double p, double k);
double binomial_at_most(double n, double p, double k);
double binomial_above(double n, double p, double k);

double chi_squared_above(double degrees, double x);
double chi_squared_quantile(double degrees, double p);        ///< x with P(X <= x) = p
double chi_squared_quantile_above(double degrees, double p);  ///< x with P(X > x) = p

double beta_quantile(double a, double b, double p);

}  // namespace cudp::law
