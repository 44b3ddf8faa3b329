#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <variant>
#include <vector>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

#include "privacy/mechanism/mechanism.hpp"

// Judges of privacy/ that share no code with it: definitions, integrated by Gauss-Legendre in fifty
// digits, and closed forms.

namespace cudp::privacy::oracle {

using Real = boost::multiprecision::cpp_bin_float_50;

/// log E[(mu / mu0)^power] over mu0 = N(0, sigma^2), mu = (1 - q) mu0 + q N(1, sigma^2).
inline Real log_moment(double q_, double sigma_, Real power) {
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

/// Renyi divergence D_alpha(mu || mu0): the data set with the example against that without.
inline double rdp(double q, double sigma, double alpha) {
  return static_cast<double>(log_moment(q, sigma, Real(alpha)) / (Real(alpha) - 1));
}

/// D_alpha(mu0 || mu): the other way round.
inline double rdp_reverse(double q, double sigma, double alpha) {
  return static_cast<double>(log_moment(q, sigma, 1 - Real(alpha)) / (Real(alpha) - 1));
}

/// log E_second[(first / second)^alpha] for mixtures of N(c, sigma^2), c = centres[j] with
/// probability weights[j]; over z > `from` only.
struct Normals {
  std::vector<double> centres, weights;
};
inline Real log_moment_of(const Normals& first, const Normals& second, double sigma_, double alpha,
                          double from = -1e300) {
  const Real sigma = sigma_;
  const Real& pi = boost::math::constants::pi<Real>();
  const auto density = [&](const Normals& m, const Real& z) -> Real {
    Real sum = 0;
    for (std::size_t j = 0; j < m.centres.size(); ++j) {
      const Real x = (z - m.centres[j]) / sigma;
      sum += m.weights[j] * exp(-x * x / 2);
    }
    return sum / sqrt(2 * pi);
  };
  const auto integrand = [&](const Real& x) -> Real {
    const Real f = density(first, x * sigma), g = density(second, x * sigma);
    return f * exp((Real(alpha) - 1) * log(f / g));
  };
  double least = 0.0, most = 0.0;
  for (const Normals* m : {&first, &second})
    for (const double c : m->centres) {
      least = std::fmin(least, c / sigma_);
      most = std::fmax(most, c / sigma_);
    }
  const double span = most - least, width = std::fmin(0.5, 1.5 / std::fmax(span, 1e-9));
  const double end = most + alpha * span + 15.5;
  Real sum = 0;
  for (double x = std::fmax(from / sigma_, least - alpha * span - 15.5); x < end; x += width)
    sum += boost::math::quadrature::gauss<Real, 30>::integrate(integrand, Real(x), Real(x + width));
  return log(sum);
}

/// The series of Mironov, Talwar, Zhang 2019, section 3.3, summed as dp_accounting's
/// _compute_log_a_frac sums it: with log |C(alpha, i)|, though the binomial coefficients alternate
/// in sign for i > alpha. It exceeds the divergence at every fractional order.
inline Real rdp_without_signs(double q_, double sigma_, double alpha_) {
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
  return log(sum) / (alpha - 1);
}

/// Canonne, Kamath, Steinke 2020, Proposition 12, written out.
inline double epsilon_at(double alpha, double rdp, double delta) {
  return rdp + std::log((alpha - 1) / alpha) - (std::log(delta) + std::log(alpha)) / (alpha - 1);
}

/// Epsilon by one order of Gaussian releases, on Poisson samples or on everything;
/// divergence(q, sigma, alpha).
inline double epsilon_by(std::span<const Release> releases, double delta, double alpha,
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

/// Exact delta of the Gaussian mechanism at epsilon: Balle, Wang 2018 (arXiv:1805.06530),
/// Theorem 8. A lower bound for every accountant.
inline double gaussian_delta(double sigma, double epsilon) {
  const auto phi = [](const Real& x) -> Real {
    return boost::math::erfc(Real(-x / sqrt(Real(2)))) / 2;
  };
  const Real s = sigma, e = epsilon;
  return static_cast<double>(phi(1 / (2 * s) - e * s) - exp(e) * phi(-1 / (2 * s) - e * s));
}

}  // namespace cudp::privacy::oracle
