#include "tests/support/distributions.hpp"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>

namespace cudp::law {

using boost::math::binomial;
using boost::math::chi_squared;
using boost::math::complement;
using boost::math::normal;

double normal_below(double x) { return cdf(normal(), x); }
double normal_quantile_above(double p) { return quantile(complement(normal(), p)); }

double binomial_is(double n, double p, double k) { return pdf(binomial(n, p), k); }
double binomial_at_most(double n, double p, double k) { return cdf(binomial(n, p), k); }
double binomial_above(double n, double p, double k) { return cdf(complement(binomial(n, p), k)); }

double chi_squared_above(double degrees, double x) {
  return cdf(complement(chi_squared(degrees), x));
}
double chi_squared_quantile(double degrees, double p) { return quantile(chi_squared(degrees), p); }
double chi_squared_quantile_above(double degrees, double p) {
  return quantile(complement(chi_squared(degrees), p));
}

double beta_quantile(double a, double b, double p) {
  return quantile(boost::math::beta_distribution<>(a, b), p);
}

}  // namespace cudp::law
