#include "tests/privacy/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace cudp::privacy::oracle {
namespace {

using Real = boost::multiprecision::cpp_bin_float_50;

/// log E[(mu / mu0)^power] over mu0 = N(0, sigma^2), mu = (1 - q) mu0 + q N(1, sigma^2).
Real log_moment(double q_, double sigma_, Real power) {
  const Real q = q_, sigma = sigma_;
  const Real& pi = boost::math::constants::pi<Real>();
  const auto integrand = [&](const Real& x) -> Real {
    const Real ratio = 1 - q + q * exp(x / sigma - 1 / (2 * sigma * sigma));
    return exp(-x * x / 2 + power * log(ratio)) / sqrt(2 * pi);
  };
  // Panels short beside 1 and beside the distance pi sigma of the branch points.
  const double width = std::fmin(0.5, 1.5 * sigma_), reach = 15.5;
  const double end = std::fmax(static_cast<double>(power), 0.0) / sigma_ + reach;
  Real sum = 0;
  for (double x = -reach; x < end; x += width)
    sum += boost::math::quadrature::gauss<Real, 30>::integrate(integrand, Real(x), Real(x + width));
  return log(sum);
}

}  // namespace

double rdp(double q, double sigma, double alpha) {
  return static_cast<double>(log_moment(q, sigma, Real(alpha)) / (Real(alpha) - 1));
}

double rdp_reverse(double q, double sigma, double alpha) {
  return static_cast<double>(log_moment(q, sigma, 1 - Real(alpha)) / (Real(alpha) - 1));
}

double rdp_without_signs(double q_, double sigma_, double alpha_) {
  const Real q = q_, sigma = sigma_, alpha = alpha_;
  const Real z0 = sigma * sigma * log(1 / q - 1) + Real(1) / 2;
  const Real root = sqrt(Real(2)) * sigma, twice = 2 * sigma * sigma;
  Real sum = 0, binomial = 1, last0 = 0, last1 = 0;
  for (int i = 0; i < 1000; ++i) {
    const Real j = alpha - i;
    const Real s0 = binomial * pow(q, i) * pow(1 - q, j) * exp((i * i - i) / twice) *
                    boost::math::erfc(Real((i - z0) / root)) / 2;
    const Real s1 = binomial * pow(q, j) * pow(1 - q, i) * exp((j * j - j) / twice) *
                    boost::math::erfc(Real((z0 - j) / root)) / 2;
    sum += s0 + s1;
    if (i > 0 && s0 < last0 && s1 < last1 && (std::max)(s0, s1) < sum * exp(Real(-30))) break;
    last0 = s0;
    last1 = s1;
    binomial *= abs(j) / (i + 1);
  }
  return static_cast<double>(log(sum) / (alpha - 1));
}

double epsilon_at(double alpha, double rdp, double delta) {
  return rdp + std::log((alpha - 1) / alpha) - (std::log(delta) + std::log(alpha)) / (alpha - 1);
}

double epsilon_by(std::span<const Release> releases, double delta, double alpha,
                  double (*divergence)(double, double, double)) {
  double sum = 0.0;
  for (const Release& release : releases) {
    const auto* gaussian = std::get_if<Gaussian>(&release.mechanism);
    const PoissonGaussian sampled = gaussian != nullptr
                                        ? PoissonGaussian{1.0, gaussian->sigma}
                                        : std::get<PoissonGaussian>(release.mechanism);
    sum += static_cast<double>(release.count) * divergence(sampled.q, sampled.sigma, alpha);
  }
  return epsilon_at(alpha, sum, delta);
}

double gaussian_delta(double sigma, double epsilon) {
  const auto phi = [](const Real& x) -> Real {
    return boost::math::erfc(Real(-x / sqrt(Real(2)))) / 2;
  };
  const Real s = sigma, e = epsilon;
  return static_cast<double>(phi(1 / (2 * s) - e * s) - exp(e) * phi(-1 / (2 * s) - e * s));
}

}  // namespace cudp::privacy::oracle
