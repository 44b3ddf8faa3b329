#include "privacy/audit.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/math/special_functions/erf.hpp>

#include "privacy/accountant.hpp"
#include "privacy/math/boundary.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Bound on the relative rounding error of a sum of positive terms.
constexpr double kRounding = 1e-9;

/// Absolute accuracy of the searches for epsilon and mu.
constexpr double kTolerance = 1e-7;

void check(const Guesses& g) {
  if (!(g.canaries > 0 && g.correct <= g.made && g.made <= g.canaries))
    throw std::invalid_argument(
        "guesses: expected correct <= made <= canaries, canaries > 0, found " +
        std::to_string(g.correct) + ", " + std::to_string(g.made) + ", " +
        std::to_string(g.canaries));
}

void check_probability(double x, const char* name, bool open) {
  if (!(x >= 0.0 && x <= 1.0) || (open && (x == 0.0 || x == 1.0)))
    throw std::invalid_argument(std::string(name) + ": expected a number in " +
                                (open ? "(0, 1)" : "[0, 1]") + ", found " + number(x));
}

/// Iterates over the probabilities P(k) of a binomial distribution with n trials and success
/// probability e^epsilon / (1 + e^epsilon): k is `first` at the start, and moves up or down by one
/// at a time. The probabilities are computed as logarithms, so that those far from the mode do not
/// underflow.
class BinomialTerms {
 public:
  BinomialTerms(std::uint64_t n, double epsilon, std::uint64_t first)
      : n_(static_cast<double>(n)), epsilon_(epsilon), k_(static_cast<double>(first)) {
    const double q_log = -std::log1p(std::exp(-epsilon));  // logarithm of q = 1 / (1 + e^-epsilon)
    log_ = std::lgamma(n_ + 1.0) - std::lgamma(k_ + 1.0) - std::lgamma(n_ - k_ + 1.0) + n_ * q_log -
           (n_ - k_) * epsilon;
  }
  double value() const { return std::exp(log_); }
  void up() {
    log_ += std::log(n_ - k_) - std::log(k_ + 1.0) + epsilon_;
    ++k_;
  }
  void down() {
    log_ += std::log(k_) - std::log(n_ - k_ + 1.0) - epsilon_;
    --k_;
  }

 private:
  double n_, epsilon_, k_, log_;
};

double normal(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_quantile(double p) { return -std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * p); }

/// Returns the release with `factor` times its noise.
Release with_noise(Release release, double factor) {
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.sigma; })
          m.sigma *= factor;
        else
          throw std::domain_error("audit: expected Gaussian noise on a sum, found " +
                                  std::string(name(release.mechanism)));
      },
      release.mechanism);
  return release;
}

Composition with_noise(std::span<const Release> releases, double factor, std::uint64_t group) {
  Composition c{.group = group};
  for (const Release& r : releases) c.releases.push_back(with_noise(r, factor));
  return c;
}

/// Options with which audits use the accountant: ten times coarser than usual and faster; the
/// result is still a bound.
constexpr AccountantOptions kCoarse{.coarseness = 10.0};

/// Returns a lower bound on the trade-off curve of these releases, from their deltas at a few
/// epsilons. Epsilons above 8 are left out: guesses of thousands of canaries say nothing about
/// events of probability e^-8 or less. composition: the releases.
TradeOffCurve trade_off_of(const Composition& composition) {
  constexpr double kEpsilons[] = {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5,
                                  2.0, 2.5,  3.0, 4.0,  6.0, 8.0};
  std::vector<double> deltas;
  for (const PrivacyBound& b : Accountant(composition, kCoarse).deltas(kEpsilons))
    deltas.push_back(b.delta);
  return trade_off(kEpsilons, deltas);
}

}  // namespace

double p_value(const Guesses& g, double epsilon, double delta) {
  check(g);
  check_probability(delta, "delta", false);
  if (!(epsilon >= 0.0 && std::isfinite(epsilon)))
    throw std::invalid_argument("epsilon: expected a finite number >= 0, found " + number(epsilon));
  // beta = P(B >= v). v: number of correct guesses. B: number of successes in `made` trials, each
  // of which succeeds with probability 1 / (1 + e^-epsilon).
  double beta = 0.0;
  BinomialTerms above(g.made, epsilon, g.correct);
  for (std::uint64_t k = g.correct; k <= g.made; ++k, above.up()) beta += above.value();
  if (g.correct == 0) return 1.0;
  // alpha = max over i of P(v > B >= v - i) / i, with the same v and B
  double alpha = 0.0;
  double sum = 0.0;
  BinomialTerms below(g.made, epsilon, g.correct - 1);
  for (std::uint64_t i = 1; i <= g.correct; ++i, below.down()) {
    sum += below.value();
    alpha = std::fmax(alpha, sum / static_cast<double>(i));
  }
  const double p = beta + alpha * delta * 2.0 * static_cast<double>(g.canaries);
  return std::fmin(1.0, p * (1.0 + kRounding));
}

double epsilon_lower(const Guesses& g, double delta, double error) {
  check_probability(error, "error", true);
  const auto excess = [&](double epsilon) { return p_value(g, epsilon, delta) - error; };
  if (!(excess(0.0) < 0.0)) return 0.0;
  double high = 1.0;
  while (excess(high) < 0.0) high *= 2.0;
  return safe_boundary(excess, high, 0.0, kTolerance);
}

TradeOffCurve gaussian_trade_off(double mu) {
  if (!(mu >= 0.0 && std::isfinite(mu)))
    throw std::invalid_argument("mu: expected a finite number >= 0, found " + number(mu));
  return [mu](double p) {
    if (p <= 0.0 || p >= 1.0) return p <= 0.0 ? 0.0 : 1.0;
    return normal(normal_quantile(p) - mu);
  };
}

TradeOffCurve trade_off(std::span<const double> epsilons, std::span<const double> deltas) {
  if (epsilons.size() != deltas.size())
    throw std::invalid_argument("trade-off: expected as many deltas as epsilons");
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < epsilons.size(); ++i) {
    check_probability(deltas[i], "delta", false);
    points.emplace_back(std::exp(epsilons[i]), deltas[i]);
  }
  return [points = std::move(points)](double p) {
    // Lower bounds on the probability Q of an event, given its probability P = p on the neighbour.
    // One follows from P <= e^epsilon Q + delta, the other from the same inequality for the
    // opposite event, 1 - Q <= e^epsilon (1 - P) + delta.
    double lower = 0.0;
    for (const auto& [factor, delta] : points)
      lower = std::max({lower, (p - delta) / factor, 1.0 - delta - factor * (1.0 - p)});
    return lower;
  };
}

bool refutes(const Guesses& g, const TradeOffCurve& curve, double error) {
  check(g);
  check_probability(error, "error", true);
  const auto m = static_cast<double>(g.canaries);
  const auto c = static_cast<double>(g.made);
  double r = error * static_cast<double>(g.correct) / m;
  double h = error * static_cast<double>(g.made - g.correct) / m;
  for (std::uint64_t i = g.correct; i-- > 0;) {
    const double next = std::fmax(h, curve(std::fmin(r, 1.0)));
    r += static_cast<double>(i) / (c - static_cast<double>(i)) * (next - h);
    h = next;
    if (r + h > c / m * (1.0 + kRounding)) return true;
  }
  return false;
}

double gaussian_epsilon_lower(const Guesses& g, double delta, double error) {
  const auto excess = [&](double mu) {
    return refutes(g, gaussian_trade_off(mu), error) ? -1.0 : 1.0;
  };
  if (excess(0.0) > 0.0) return 0.0;
  double high = 1.0;
  while (excess(high) < 0.0) high *= 2.0;
  const double mu = safe_boundary(excess, high, 0.0, kTolerance);
  return gaussian_epsilon(mu, delta) * (1.0 - kRounding);
}

double epsilon_lower(const Guesses& g, std::span<const Release> releases, double delta,
                     double error, std::uint64_t group) {
  const auto refuted = [&](double log_noise) {
    return refutes(g, trade_off_of(with_noise(releases, std::exp(log_noise), group)), error);
  };
  constexpr double kStep = 0.7;    // step in the logarithm of the noise
  constexpr double kMaxLog = 7.0;  // a thousand times as much noise: then nothing can be shown
  double allowed = 0.0;
  while (refuted(allowed)) allowed -= kStep;
  double refused = allowed + kStep;
  for (; !refuted(refused); refused += kStep)
    if (refused > kMaxLog) return 0.0;
  for (int i = 0; i < 6; ++i) {
    const double middle = 0.5 * (allowed + refused);
    (refuted(middle) ? refused : allowed) = middle;
  }
  Accountant accountant(with_noise(releases, std::exp(refused), group));
  return accountant.epsilon(delta).epsilon_lower;
}

}  // namespace cudp::privacy
