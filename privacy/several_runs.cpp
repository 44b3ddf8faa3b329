#include "privacy/several_runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include "privacy/accountant.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/odometer.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/selection.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Renyi divergences of one training (RunSpending), and its probability of failure.
class Curve {
 public:
  Curve(const RunSpending& spending, std::uint64_t group)
      : run_(spending.run), failure_(spending.failure), allocates_(allocates(spending)) {
    if (!(failure_ >= 0.0 && failure_ < 1.0))
      throw std::invalid_argument("failure: expected a number in [0, 1), found " +
                                  number(failure_));
    if (const auto* planned = std::get_if<PlannedRun>(&run_))
      curve_.emplace(planned->releases, privacy::Neighbours{.group = group});
    if (const auto* chosen = std::get_if<ChosenRun>(&run_))
      curve_.emplace(chosen->releases, privacy::Neighbours{.group = group});
    if (const auto* stated = std::get_if<StatedRun>(&run_))
      curve_.emplace(std::vector<Release>{{ApproximateDp{stated->epsilon, stated->delta}, 1}});
    if (curve_) failure_ += curve_->failure();
    if (const auto* tuned = std::get_if<TunedRun>(&run_)) {
      tuned_ = std::make_shared<Selection>(*tuned, group);
      failure_ += tuned_->failure();
    }
    if (const auto* filtered = std::get_if<RenyiFilteredRun>(&run_)) {
      check_order(filtered->order);
      check_rdp(filtered->divergence, filtered->order);
    }
    if (const auto* filtered = std::get_if<ZcdpFilteredRun>(&run_))
      if (!(filtered->rho >= 0.0 && std::isfinite(filtered->rho)))
        throw std::invalid_argument("rho: expected a number >= 0, found " + number(filtered->rho));
  }

  /// Returns the training's Renyi divergence at this order [nats], rounded up; infinite if no bound
  /// is known.
  double at(double order) const {
    if (allocates_) return infinity;
    if (const auto* filtered = std::get_if<RenyiFilteredRun>(&run_))
      return order <= filtered->order ? filtered->divergence : infinity;
    if (const auto* filtered = std::get_if<ZcdpFilteredRun>(&run_))
      return filtered->rho * order * outward;
    if (tuned_) return tuned_->divergence(order);
    // Thousands of different noise levels are grouped, and each group counts as its least noise.
    return std::fmax(0.0, curve_->grouped(order, kEntries));
  }
  double failure() const { return failure_; }
  /// Returns whether only a bound on Renyi divergences is known of the training. Privacy loss
  /// distributions then do not apply.
  bool is_filtered() const {
    return tuned_ || std::holds_alternative<RenyiFilteredRun>(run_) ||
           std::holds_alternative<ZcdpFilteredRun>(run_);
  }

 private:
  static constexpr std::size_t kEntries = 4096;
  const decltype(RunSpending::run)& run_;
  double failure_;
  bool allocates_;
  std::optional<RdpCurve> curve_;
  std::shared_ptr<Selection> tuned_;
};

std::vector<Curve> curves_of(std::span<const RunSpending> runs, double delta, std::uint64_t group) {
  check_delta(delta);
  check_group(group);
  std::vector<Curve> curves;
  curves.reserve(runs.size());
  for (const RunSpending& run : runs) curves.emplace_back(run, group);
  return curves;
}

[[noreturn]] void refuse_delta(double failure, double part) {
  throw std::domain_error("delta: the runs' own deltas add up to " + number(failure) +
                          ", and only " + number(part) +
                          " of delta can pay for them. Give a larger delta");
}

double by_divergences(const std::vector<Curve>& curves, double delta) {
  std::vector<double> orders(default_orders().begin(), default_orders().end());
  return lowest_epsilon(
             orders,
             [&](std::size_t i) {
               double sum = 0.0;
               for (const Curve& curve : curves) sum += curve.at(orders[i]);
               return sum * (1.0 + static_cast<double>(curves.size()) *
                                       std::numeric_limits<double>::epsilon());
             },
             delta)
      .epsilon;
}

/// Returns epsilon at delta for all trainings together, computed from privacy loss distributions;
/// infinite if a training has no such distribution.
double by_losses(std::span<const RunSpending> runs, double delta, std::uint64_t group) {
  Composition all{.group = group};
  for (const RunSpending& spending : runs) {
    if (const auto* planned = std::get_if<PlannedRun>(&spending.run))
      all.releases.insert(all.releases.end(), planned->releases.begin(), planned->releases.end());
    // The guarantee of a StatedRun is for a whole unit of privacy. It cannot be composed with
    // releases whose guarantee is for single examples, of which a unit is a group.
    if (group > 1 && std::holds_alternative<StatedRun>(spending.run)) return infinity;
    if (const auto* stated = std::get_if<StatedRun>(&spending.run))
      all.releases.push_back({ApproximateDp{stated->epsilon, stated->delta}, 1});
  }
  try {
    return Accountant(std::move(all)).epsilon(delta).epsilon;
  } catch (const std::domain_error&) {
    return infinity;
  }
}

}  // namespace

bool allocates(const RunSpending& run) {
  const auto any = [](const std::vector<Release>& releases) {
    return std::ranges::any_of(releases, [](const Release& release) {
      const auto* epoch = std::get_if<AllocatedGaussian>(&release.mechanism);
      return epoch != nullptr && epoch->steps > 1;
    });
  };
  if (const auto* planned = std::get_if<PlannedRun>(&run.run)) return any(planned->releases);
  if (const auto* chosen = std::get_if<ChosenRun>(&run.run)) return any(chosen->releases);
  return false;
}

RunCost cost_at(const RunSpending& run, double order, std::uint64_t group) {
  check_order(order);
  check_group(group);
  const Curve curve(run, group);
  return {.divergence = curve.at(order), .failure = curve.failure()};
}

double epsilon_as_chosen(std::span<const RunSpending> runs, double delta, std::uint64_t group) {
  const std::vector<Curve> curves = curves_of(runs, delta, group);
  const double half = 0.5 * delta;
  double failure = 0.0;
  for (const Curve& curve : curves) failure += curve.failure();
  if (!(failure * outward <= half)) refuse_delta(failure, half);
  Odometer odometer(half, {}, half);
  for (const Curve& curve : curves) {
    odometer.charge([&](double order) { return curve.at(order); });
    odometer.charge_failure(curve.failure());
  }
  const double epsilon = odometer.epsilon();
  if (!std::isfinite(epsilon))
    throw std::domain_error("expected runs with a finite divergence at a common order, found none");
  return epsilon;
}

double epsilon_fixed_ahead(std::span<const RunSpending> runs, double delta, std::uint64_t group) {
  if (std::ranges::any_of(runs, [](const RunSpending& spending) {
        return std::holds_alternative<ChosenRun>(spending.run);
      }))
    return epsilon_as_chosen(runs, delta, group);
  const std::vector<Curve> curves = curves_of(runs, delta, group);
  double failure = 0.0;
  double beside = 0.0;  // failure probability that privacy loss distributions do not include
  for (const Curve& curve : curves) failure += curve.failure();
  for (const RunSpending& run : runs) beside += run.failure;
  if (!(failure * outward < delta)) refuse_delta(failure, delta);
  double epsilon = infinity;
  if (std::ranges::none_of(runs, allocates))
    epsilon = by_divergences(curves, (delta - failure * outward) / outward);
  if (std::ranges::none_of(curves, &Curve::is_filtered))
    epsilon = std::fmin(epsilon, by_losses(runs, (delta - beside * outward) / outward, group));
  if (failure * outward <= 0.5 * delta && std::ranges::none_of(runs, allocates))
    epsilon = std::fmin(epsilon, epsilon_as_chosen(runs, delta, group));
  if (!std::isfinite(epsilon))
    throw std::domain_error("expected runs with a finite divergence at a common order, found none");
  return epsilon;
}

}  // namespace cudp::privacy
