#include "privacy/stopping.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "privacy/math/boundary.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr double kTwo64 = 18446744073709551616.0;
/// Range of the parameters of a StoppingLaw that is supported: eta at most kMaxEta, gamma at least
/// kMinGamma.
constexpr double kMaxEta = 8.0, kMinGamma = 1e-7;

void check_shape(double eta) {
  if (!(eta > -1.0 && eta <= kMaxEta))
    throw std::invalid_argument("eta: expected a number in (-1, 8], found " + number(eta));
}

void check_law(const StoppingLaw& law) {
  check_shape(law.eta);
  if (!(law.gamma >= kMinGamma && law.gamma < 1.0))
    throw std::invalid_argument("gamma: expected a number in [1e-7, 1), found " +
                                number(law.gamma));
  if (law.cap < 1 || law.cap > kMaxRepetitions)
    throw std::invalid_argument("cap: expected a whole number from 1 to " +
                                std::to_string(kMaxRepetitions) + ", found " +
                                std::to_string(law.cap));
}

/// Returns P(K = k + 1) / P(K = k), with K the random number of trainings, by the formula of
/// StoppingLaw.
double ratio(double eta, double gamma, double k) { return (1.0 - gamma) * ((k + eta) / (k + 1.0)); }

/// Returns P(K = k), with K the number of trainings, for k = 1 to law.cap, at index k - 1. The
/// relative error is about k roundings.
std::vector<double> probabilities(const StoppingLaw& law) {
  std::vector<double> p(law.cap);
  p[0] = 1.0;
  double sum = 1.0;
  for (std::size_t i = 1; i < p.size(); ++i) {
    p[i] = p[i - 1] * ratio(law.eta, law.gamma, static_cast<double>(i));
    sum += p[i];
  }
  for (double& x : p) x /= sum;
  return p;
}

double mean_of(const StoppingLaw& law) {
  double weight = 1.0, sum = 1.0, first = 1.0;
  for (std::uint64_t k = 1; k < law.cap; ++k) {
    weight *= ratio(law.eta, law.gamma, static_cast<double>(k));
    if (weight < 1e-40 * sum) break;
    sum += weight;
    first += weight * static_cast<double>(k + 1);
  }
  return first / sum;
}

/// Returns the smallest power of two with P(K > cap) < 2^-50, at most kMaxRepetitions. K: the
/// number of trainings, truncated negative binomial with parameters eta and gamma.
std::uint64_t automatic_cap(double eta, double gamma) {
  double weight = 1.0, sum = 1.0;
  for (std::uint64_t k = 1; k < kMaxRepetitions; ++k) {
    const double next = ratio(eta, gamma, static_cast<double>(k));
    // Later ratios are at most the larger of this one and their limit.
    const double largest = std::fmax(next, 1.0 - gamma);
    if (largest < 1.0 && weight * next / (1.0 - largest) < 0x1p-50 * sum) {
      std::uint64_t cap = 1;
      while (cap < k) cap *= 2;
      return std::min(cap, kMaxRepetitions);
    }
    weight *= next;
    sum += weight;
  }
  return kMaxRepetitions + 1;
}

}  // namespace

Stopping::Stopping(const StoppingLaw& law) : law_(law) {
  check_law(law);
  const std::vector<double> p = probabilities(law);
  const auto mode = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  weights_.resize(p.size());
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (i == mode) continue;
    // The product is exact, because kTwo64 is a power of two. It is below 2^64, because p[mode] is
    // at least as large as p[i], and both add up to at most 1.
    weights_[i] = static_cast<std::uint64_t>(p[i] * kTwo64);
    others += weights_[i];
  }
  certain_ = others == 0;
  weights_[mode] = std::uint64_t{0} - others;
  if (mode > 0 && weights_[0] == 0)
    throw std::invalid_argument("gamma: expected a law with P(K = 1) >= 2^-64, found eta " +
                                number(law.eta) + " and gamma " + number(law.gamma));
  last_.resize(p.size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum += weights_[i];
    last_[i] = sum - 1;
  }
  mean_ = slopes_above({1.0}).front();
}

double Stopping::probability(std::uint64_t k) const {
  if (k < 1 || k > law_.cap) return 0.0;
  if (certain_) return k == 1 ? 1.0 : 0.0;
  return static_cast<double>(weights_[k - 1]) / kTwo64;
}

double Stopping::tail(std::uint64_t k) const {
  if (k < 1) return 1.0;
  if (k >= law_.cap) return 0.0;
  return static_cast<double>(std::uint64_t{0} - (last_[k - 1] + 1)) / kTwo64;
}

std::uint64_t Stopping::draw(std::uint64_t bits) const {
  return static_cast<std::uint64_t>(std::lower_bound(last_.begin(), last_.end(), bits) -
                                    last_.begin()) +
         1;
}

std::vector<double> Stopping::slopes(const std::vector<double>& u, double factor) const {
  std::vector<double> terms(law_.cap);
  for (std::uint64_t k = 1; k <= law_.cap; ++k)
    terms[k - 1] = static_cast<double>(k) * probability(k);
  std::size_t end = terms.size();
  while (end > 1 && terms[end - 1] == 0.0) --end;
  // Horner's rule, for several u at a time, so that the compiler can use vectors.
  constexpr std::size_t kTogether = 16;
  std::vector<double> sums(u.size());
  for (std::size_t begin = 0; begin < u.size(); begin += kTogether) {
    double x[kTogether] = {}, sum[kTogether] = {};
    const std::size_t n = std::min(kTogether, u.size() - begin);
    std::copy_n(u.begin() + static_cast<std::ptrdiff_t>(begin), n, x);
    for (std::size_t k = end; k-- > 0;)
      for (std::size_t i = 0; i < kTogether; ++i) sum[i] = sum[i] * x[i] + terms[k];
    for (std::size_t i = 0; i < n; ++i) sums[begin + i] = sum[i] * factor;
  }
  return sums;
}

std::vector<double> Stopping::slopes_above(const std::vector<double>& u) const {
  // Each term has at most two roundings, and two more for each step of Horner's rule.
  return slopes(u, 1.0 + rounding * (2.0 * static_cast<double>(law_.cap) + 8.0));
}

std::vector<double> Stopping::slopes_below(const std::vector<double>& u) const {
  return slopes(u, 1.0 - rounding * (2.0 * static_cast<double>(law_.cap) + 8.0));
}

double Stopping::generated_below(double u) const {
  double sum = 0.0;
  for (std::uint64_t k = law_.cap; k > 0; --k) sum = sum * u + probability(k);
  return sum * u * (1.0 - rounding * (2.0 * static_cast<double>(law_.cap) + 8.0));
}

StoppingLaw stopping_law(double eta, double mean, std::uint64_t cap) {
  check_shape(eta);
  if (!(mean > 1.0 && mean <= 1e4))
    throw std::invalid_argument("mean: expected a number in (1, 1e4], found " + number(mean));
  if (cap > kMaxRepetitions)
    throw std::invalid_argument("cap: expected a whole number from 1 to " +
                                std::to_string(kMaxRepetitions) + ", or 0, found " +
                                std::to_string(cap));
  const std::uint64_t summed = cap == 0 ? kMaxRepetitions : cap;
  const auto excess = [&](double log_gamma) {
    return mean_of({.eta = eta, .gamma = std::exp(log_gamma), .cap = summed}) - mean;
  };
  // E[K] decreases with gamma.
  const double low = std::log(kMinGamma), high = -1e-12;
  if (!(excess(low) > 0.0))
    throw std::domain_error("E[K] = " + number(mean) + " is not possible with eta " + number(eta) +
                            " and at most " + std::to_string(summed) +
                            " repetitions: give a larger cap, a larger eta or a smaller E[K]");
  StoppingLaw law{
      .eta = eta, .gamma = std::exp(safe_boundary(excess, low, high, 1e-13)), .cap = cap};
  if (cap == 0) law.cap = automatic_cap(eta, law.gamma);
  if (law.cap > kMaxRepetitions)
    throw std::domain_error("eta " + number(eta) + " and E[K] = " + number(mean) +
                            " allow more than " + std::to_string(kMaxRepetitions) +
                            " repetitions: give a cap, or a larger eta");
  return law;
}

}  // namespace cudp::privacy
