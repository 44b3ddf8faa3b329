#include "privacy/odometer.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr std::array default_list{1.5,  2.0,  3.0,  4.0,  6.0,   8.0,   12.0,  16.0,  24.0,
                                  32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0};

}  // namespace

Odometer::Odometer(double delta, std::span<const double> orders, double failure)
    : delta_(delta), failure_(failure) {
  check_delta(delta);
  if (!(failure >= 0.0 && failure < 1.0))
    throw std::invalid_argument("failure: expected a number in [0, 1), found " + number(failure));
  if (orders.empty()) orders = default_list;
  for (const double order : orders) check_order(order);
  orders_.assign(orders.begin(), orders.end());
  divergence_.assign(orders.size(), 0.0);
}

void Odometer::charge(const Release& releases) {
  check(releases);
  if (releases_nothing(releases)) return;
  const auto count = static_cast<double>(releases.count);
  std::vector<double> divergence;
  divergence.reserve(orders_.size());
  for (const double order : orders_) divergence.push_back(count * rdp(releases.mechanism, order));
  charge_failure(count * failure_of(releases.mechanism));
  add(divergence);
}

void Odometer::charge(const std::function<double(double order)>& at) {
  std::vector<double> divergence;
  for (const double order : orders_) {
    divergence.push_back(at(order));
    check_rdp(divergence.back(), order);
  }
  add(divergence);
}

void Odometer::charge_failure(double probability) {
  if (probability == 0.0) return;
  const double left = failure_ - probability * (1.0 + 4.0 * rounding);
  if (!(probability > 0.0 && left >= 0.0))
    throw std::domain_error("expected deltas within the " + number(failure_) +
                            " left of the part of delta set aside for them, found " +
                            number(probability));
  failure_ = left * (1.0 - rounding);
  nothing_ = false;
}

void Odometer::add(const std::vector<double>& divergence) {
  for (std::size_t i = 0; i < orders_.size(); ++i) divergence_[i] += divergence[i];
  charges_ += 2.0;
  nothing_ = false;
}

void Odometer::charge(const Ledger& ledger) {
  for (const Release& release : ledger.releases()) charge(release);
}

double Odometer::epsilon() const {
  if (nothing_) return 0.0;
  const double price = -std::log(delta_ / static_cast<double>(orders_.size()));
  double min_total = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < orders_.size(); ++i)
    min_total = std::fmin(min_total, divergence_[i] * (1.0 + charges_ * rounding) +
                                         price / (orders_[i] - 1.0) * (1.0 + 4.0 * rounding));
  return min_total * (1.0 + 4.0 * rounding);
}

}  // namespace cudp::privacy
