#include "privacy/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "privacy/curve.hpp"
#include "privacy/math/boundary.hpp"
#include "privacy/rdp/divergence.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr double most_steps = 0x1p53;
constexpr double tolerance = 1e-9;  // of log sigma and log q

/// A budget, part of which is already spent on `before`, for trials of one more phase.
class Budget {
 public:
  Budget(double epsilon, double delta, std::span<const Phase> before,
         std::span<const double> orders)
      : epsilon_(epsilon),
        delta_(delta),
        before_(before),
        orders_(orders.empty() ? default_orders() : orders),
        before_rdp_(orders_.size(), -1.0) {
    if (!(epsilon > 0.0 && epsilon <= 1e6))
      throw std::invalid_argument("epsilon: expected a number in (0, 1e6], found " +
                                  number(epsilon));
    check_delta(delta);
    for (const Phase& phase : before_) check(phase);
  }

  /// The divergence already spent, at orders()[i]. Computed once.
  double spent(std::size_t i) {
    if (before_rdp_[i] < 0.0) before_rdp_[i] = composed_rdp(before_, orders_[i]);
    return before_rdp_[i];
  }

  /// <= 0 where the trial is within the budget; log epsilon is nearly straight in log sigma, log q.
  double excess(const Phase& trial) {
    const auto rdp = [&](std::size_t i) {
      return spent(i) + composed_rdp({&trial, 1}, orders_[i]);
    };
    const double epsilon = lowest_epsilon(orders_, rdp, delta_).epsilon;
    return std::log(std::clamp(epsilon, 1e-300, 1e300) / epsilon_);
  }

  /// The last word: epsilon_of the whole, rounding and all.
  bool holds(const Phase& trial) const {
    std::vector<Phase> phases(before_.begin(), before_.end());
    phases.push_back(trial);
    return epsilon_of(phases, delta_, orders_).epsilon <= epsilon_;
  }

  /// Refuses a budget that even a phase of almost no cost would exceed.
  void check_reachable() {
    const auto rdp = [&](std::size_t i) { return spent(i); };
    const double least = lowest_epsilon(orders_, rdp, delta_).epsilon;
    if (least < epsilon_) return;
    refuse(number(least) + (before_.empty()
                                ? " is the least that Renyi orders up to " +
                                      number(*std::max_element(orders_.begin(), orders_.end())) +
                                      " can show; larger orders show less"
                                : " is already spent"));
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw std::domain_error("epsilon " + number(epsilon_) + " at delta " + number(delta_) +
                            " cannot be reached: " + reason);
  }

  std::span<const double> orders() const { return orders_; }

 private:
  double epsilon_;
  double delta_;
  std::span<const Phase> before_;
  std::span<const double> orders_;
  std::vector<double> before_rdp_;  ///< by order; < 0: not yet computed
};

void check_steps(std::uint64_t steps) {
  if (steps == 0) throw std::invalid_argument("steps: expected a number > 0, found 0");
}

/// Where excess(x) turns from positive (x below) to safe (x above), searching outwards from x in
/// ever larger steps. Returns x on the safe side.
template <class Excess>
double lowest_safe(const Excess& excess, double x, double least, double most, Budget& budget,
                   const char* what) {
  double step = 0.7, bad = x, good = x;
  if (excess(x) > 0.0) {
    do {
      bad = good;
      if (bad >= most) budget.refuse(std::string(what) + " that reaches it is out of range");
      good = std::fmin(most, bad + step);
      step *= 1.6;
    } while (excess(good) > 0.0);
  } else {
    do {
      good = bad;
      if (good <= least) return good;
      bad = std::fmax(least, good - step);
      step *= 1.6;
    } while (!(excess(bad) > 0.0));
  }
  return safe_boundary(excess, bad, good, tolerance);
}

}  // namespace

double sigma_for(double epsilon, double delta, double q, std::uint64_t steps,
                 std::span<const Phase> before, std::span<const double> orders) {
  Budget budget(epsilon, delta, before, orders);
  check(Phase{.q = q, .sigma = 1.0, .steps = steps});
  check_steps(steps);
  if (q == 0.0) throw std::invalid_argument("q: expected a sampling rate > 0, found 0");
  budget.check_reachable();
  const auto trial = [&](double log_sigma) {
    return Phase{.q = q, .sigma = std::exp(log_sigma), .steps = steps};
  };
  const auto excess = [&](double log_sigma) { return budget.excess(trial(log_sigma)); };
  double x = lowest_safe(excess, 0.0, -20.0, 45.0, budget, "the noise multiplier");
  for (double nudge = 1e-15; !budget.holds(trial(x)); nudge *= 2.0) x += nudge;
  return trial(x).sigma;
}

double rate_for(double epsilon, double delta, double sigma, std::uint64_t steps,
                std::span<const Phase> before, std::span<const double> orders) {
  Budget budget(epsilon, delta, before, orders);
  check(Phase{.q = 1.0, .sigma = sigma, .steps = steps});
  check_steps(steps);
  budget.check_reachable();
  // In y = -log q, so that more is safer, as it is for sigma.
  const auto trial = [&](double y) {
    return Phase{.q = std::exp(-y), .sigma = sigma, .steps = steps};
  };
  const auto excess = [&](double y) { return budget.excess(trial(y)); };
  double y = lowest_safe(excess, 4.6, 0.0, 200.0, budget, "the sampling rate");
  for (double nudge = 1e-15; !budget.holds(trial(y)); nudge *= 2.0) y += nudge;
  return trial(y).q;
}

std::uint64_t steps_for(double epsilon, double delta, double q, double sigma,
                        std::span<const Phase> before, std::span<const double> orders) {
  Budget budget(epsilon, delta, before, orders);
  check(Phase{.q = q, .sigma = sigma, .steps = 1});
  if (q == 0.0) throw std::invalid_argument("q: expected a sampling rate > 0, found 0");
  budget.check_reachable();
  // At each order epsilon is a straight line in the number of steps.
  double most = 0.0;
  for (std::size_t i = 0; i < budget.orders().size(); ++i) {
    const double order = budget.orders()[i];
    const double left = epsilon - epsilon_at(order, budget.spent(i), delta);
    if (!(left > 0.0)) continue;
    most = std::fmax(most, left / rdp_sampled_gaussian(q, sigma, order));
  }
  double steps = std::fmin(std::floor(most), most_steps);
  // Rounding may have given one step too many.
  const auto trial = [&](double n) {
    return Phase{.q = q, .sigma = sigma, .steps = static_cast<std::uint64_t>(n)};
  };
  for (double back = 1.0; steps >= 1.0 && !budget.holds(trial(steps)); back *= 2.0) steps -= back;
  if (steps < 1.0) budget.refuse("a single step exceeds it");
  return static_cast<std::uint64_t>(steps);
}

}  // namespace cudp::privacy
