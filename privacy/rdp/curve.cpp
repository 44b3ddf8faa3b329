#include "privacy/rdp/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Returns the precision 1 / sigma^2 of Gaussian noise, never 0.
double precision(double sigma) {
  const double s = std::fmin(sigma, 1e100);
  return 1.0 / s / s;
}

/// Searches for the order with the smallest value(order) between `low` and `high`, at about ten
/// orders, by golden section search over log(order - 1). Returns nothing: value() itself keeps the
/// best. The search need not be precise, because every order gives a valid bound. Value: type of
/// the function value().
template <class Value>
void refine(const Value& value, double low, double high) {
  const double golden = 0.5 * (std::sqrt(5.0) - 1.0);
  double a = std::log(low - 1.0), b = std::log(high - 1.0);
  const auto at = [&](double u) { return value(1.0 + std::exp(u)); };
  double u = b - golden * (b - a), v = a + golden * (b - a);
  double fu = at(u), fv = at(v);
  for (int i = 0; i < 10; ++i) {
    if (fu <= fv) {
      b = v;
      v = u;
      fv = fu;
      u = b - golden * (b - a);
      fu = at(u);
    } else {
      a = u;
      u = v;
      fu = fv;
      v = a + golden * (b - a);
      fv = at(v);
    }
  }
}

/// Returns the orders among which the best one is searched: 1 + 1e-6 to 1.06, the default orders,
/// and powers of two up to largest_order.
std::vector<double> wide_orders() {
  std::vector<double> orders{1.0 + 1e-6, 1.0001, 1.001, 1.01, 1.03, 1.06};
  orders.insert(orders.end(), default_orders().begin(), default_orders().end());
  for (double order = 2048.0; order < largest_order; order *= 2.0) orders.push_back(order);
  orders.push_back(largest_order);
  return orders;
}

/// Returns the smallest bound value(order, divergence) that a curve of Renyi divergences gives,
/// over the orders `listed` or, if there are none, over all orders. The order is chosen with
/// estimated divergences, which are fast; the bound is then computed with the exact one.
/// search(orders, divergences): finds the best of these orders.
template <class Search, class Value>
PrivacyBound best_of(const RdpCurve& curve, std::span<const double> listed, const Search& search,
                     const Value& value) {
  const std::vector<double> wide = listed.empty() ? wide_orders() : std::vector<double>();
  const std::span<const double> orders = listed.empty() ? std::span<const double>(wide) : listed;
  const std::size_t entries = curve.neighbours().group == 1 ? 256 : 64;
  const auto estimate = [&](double order) { return curve.estimate(order, entries); };
  const auto certified = [&](double order) {
    return curve.neighbours().group == 1 ? curve.at(order) : curve.grouped(order, 1024);
  };
  const PrivacyBound best = search(orders, [&](std::size_t i) { return estimate(orders[i]); });
  if (best.order == 0.0) return best;
  std::vector<double> last{best.order};
  if (!listed.empty()) return search(last, [&](std::size_t i) { return certified(last[i]); });
  const auto found = std::find(wide.begin(), wide.end(), best.order);
  double min_value = infinity, order = best.order;
  refine(
      [&](double tried) {
        const double found = value(tried, estimate(tried));
        if (found < min_value) {
          min_value = found;
          order = tried;
        }
        return found;
      },
      found == wide.begin() ? best.order : *(found - 1),
      found + 1 == wide.end() ? best.order : *(found + 1));
  last.push_back(order);
  return search(last, [&](std::size_t i) { return certified(last[i]); });
}

}  // namespace

RdpCurve::RdpCurve(std::span<const Release> releases, const Neighbours& neighbours)
    : neighbours_(neighbours) {
  std::map<std::pair<double, double>, double> sampled;  // count by (q, sigma)
  for (const Release& release : releases) {
    check(release);
    if (privacy::releases_nothing(release)) continue;
    nothing_ = false;
    const auto count = static_cast<double>(release.count);
    failure_ += count * failure_of(release.mechanism, neighbours);
    roundings_ += 1.0;
    const auto* gaussian = std::get_if<Gaussian>(&release.mechanism);
    const auto* poisson = std::get_if<PoissonGaussian>(&release.mechanism);
    if (gaussian != nullptr) {
      precision_ += precision(gaussian->sigma) * count;
    } else if (poisson != nullptr && poisson->q == 1.0) {
      precision_ += precision(poisson->sigma) * count;
    } else if (poisson != nullptr) {
      sampled[{poisson->q, poisson->sigma}] += count;
    } else if (!others_.empty() && others_.back().mechanism == release.mechanism &&
               release.count <= std::numeric_limits<std::uint64_t>::max() - others_.back().count) {
      others_.back().count += release.count;
    } else {
      others_.push_back(release);
    }
  }
  failure_ *= 1.0 + roundings_ * rounding;
  for (const auto& [setting, count] : sampled) {
    if (rates_.empty() || rates_.back().q != setting.first)
      rates_.push_back({.q = setting.first, .sigma = {}, .count = {}});
    rates_.back().sigma.push_back(setting.second);
    rates_.back().count.push_back(count);
  }
}

double RdpCurve::at(double order) const {
  return sum(order, std::numeric_limits<std::size_t>::max() / 2, 0.0);
}

double RdpCurve::grouped(double order, std::size_t entries) const {
  return sum(order, entries, 0.0);
}

double RdpCurve::estimate(double order, std::size_t entries) const {
  return sum(order, entries, 0.5);
}

/// Returns the sum of the releases' Renyi divergences of this order [nats]. For speed, the many
/// sigmas of one sampling rate are replaced by `entries` values in geometric sequence. position: 0
/// replaces a sigma by the next smaller one in that sequence, which gives an upper bound; 0.5 by
/// the value half-way, which gives an estimate.
double RdpCurve::sum(double order, std::size_t entries, double position) const {
  double sum = 0.0;
  if (precision_ > 0.0) sum += precision_ * rdp(Gaussian{.sigma = 1.0}, order, neighbours_);
  for (const Rate& rate : rates_) {
    if (rate.sigma.size() >= 2 * entries) {
      sum += of_table(rate, order, entries, position);
      continue;
    }
    for (std::size_t i = 0; i < rate.sigma.size(); ++i)
      sum += rate.count[i] * rdp(PoissonGaussian{rate.q, rate.sigma[i]}, order, neighbours_);
  }
  for (const Release& release : others_)
    sum += static_cast<double>(release.count) * rdp(release.mechanism, order, neighbours_);
  return sum * (1.0 + (roundings_ + 8.0) * rounding);
}

double RdpCurve::of_table(const Rate& rate, double order, std::size_t entries,
                          double position) const {
  const double min_sigma = rate.sigma.front(), log_range = std::log(rate.sigma.back() / min_sigma);
  const auto entry = [&](double i) {
    return min_sigma * std::exp(log_range * i / static_cast<double>(entries));
  };
  double sum = 0.0, next = 0.0, divergence = 0.0;
  double used = 0.0;  // number of entries passed; the last one is <= the current sigma < next
  for (std::size_t i = 0; i < rate.sigma.size(); ++i) {
    if (rate.sigma[i] >= next) {
      while (entry(used) <= rate.sigma[i]) used += 1.0;
      const double bound = used == 0.0 ? min_sigma : std::fmin(entry(used - 1.0), rate.sigma[i]);
      const double sigma = position == 0.0 ? bound : entry(used - 1.0 + position);
      divergence = rdp(PoissonGaussian{rate.q, sigma}, order, neighbours_);
      next = entry(used);
    }
    sum += rate.count[i] * divergence;
  }
  return sum;
}

PrivacyBound epsilon_by_rdp(std::span<const Release> releases, double delta,
                            const Neighbours& neighbours, std::span<const double> orders) {
  check_delta(delta);
  const RdpCurve curve(releases, neighbours);
  if (curve.releases_nothing()) return {.delta = delta, .accountant = AccountantKind::rdp};
  const double rest = delta - curve.failure();
  if (!(rest > 0.0))
    throw std::domain_error("delta: expected more than " + number(curve.failure()) +
                            ", the sum of the mechanisms' own deltas, found " + number(delta));
  PrivacyBound best = best_of(
      curve, orders,
      [&](std::span<const double> of, const RdpAt& at) { return lowest_epsilon(of, at, rest); },
      [&](double order, double divergence) { return epsilon_at(order, divergence, rest); });
  if (!std::isfinite(best.epsilon))
    throw std::invalid_argument("rdp: expected an order with a finite divergence, found none");
  best.delta = delta;
  return best;
}

PrivacyBound delta_by_rdp(std::span<const Release> releases, double epsilon,
                          const Neighbours& neighbours, std::span<const double> orders) {
  check_epsilon(epsilon);
  const RdpCurve curve(releases, neighbours);
  if (curve.releases_nothing()) return {.epsilon = epsilon, .accountant = AccountantKind::rdp};
  PrivacyBound best = best_of(
      curve, orders,
      [&](std::span<const double> of, const RdpAt& at) { return lowest_delta(of, at, epsilon); },
      [&](double order, double divergence) { return log_delta_at(order, divergence, epsilon); });
  best.delta = std::fmin(1.0, (best.delta + curve.failure()) * (1.0 + 2.0 * rounding));
  return best;
}

}  // namespace cudp::privacy
