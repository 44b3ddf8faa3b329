#include "privacy/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "privacy/calibration_search.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr Tolerance usual{.epsilon = 1e-5, .aim = 3e-6, .value = 1e-6, .move = 5e-7, .exact = 1e6};
/// Tolerance if epsilon follows from Renyi divergences at given orders. Such divergences are exact
/// except for a few rounding errors, so the tolerance is small.
constexpr Tolerance at_listed_orders{
    .epsilon = 1e-12, .aim = 3e-13, .value = 1e-13, .move = 5e-14, .exact = 1e13};

/// Returns whether epsilon is computed from Renyi divergences at orders that the caller listed.
/// Such divergences are closed forms or short integrals, and so precise enough for the tolerance
/// at_listed_orders. composition: the releases, with their group size. options: the accountant's.
bool lists_orders(const Composition& composition, const AccountantOptions& options) {
  return options.kind == AccountantKind::rdp && !options.orders.empty() && composition.group == 1;
}

/// Finds the value of one unknown with which a composition just stays within its budget (epsilon,
/// delta): gives search_fitting_value() the bounds of an accountant.
class Solver {
 public:
  Solver(const Composition& before, const AccountantOptions& options,
         std::function<std::vector<Release>(double)> releases_at, Unknown unknown, double epsilon,
         double delta)
      : before_(before),
        options_(with_points(options)),
        releases_at_(std::move(releases_at)),
        unknown_(unknown),
        epsilon_(epsilon),
        delta_(delta) {
    if (!(epsilon > 0.0 && epsilon <= 1e6))
      throw std::invalid_argument("epsilon: expected a number in (0, 1e6], found " +
                                  number(epsilon));
    if (epsilon < 1e-6)
      throw std::domain_error("epsilon " + number(epsilon) + " at delta " + number(delta) +
                              " cannot be reached: the smallest epsilon supported is 1e-06");
    check_delta(delta);
    if (lists_orders(before_, options_)) check_reachable();
  }

  double solve() {
    const auto other = [this](double v) { return excess(v, not_worse(), options_); };
    return search_fitting_value(
        unknown_, lists_orders(before_, options_) ? at_listed_orders : usual,
        {.coarse = [this](double v) { return coarse(v); },
         .fine = [this](double v) { return fine(v); },
         .other = examines_both() ? std::function<double(double)>() : other},
        "epsilon " + number(epsilon_) + " at delta " + number(delta_));
  }

 private:
  /// Returns the options with a fixed size of the tables for epochs of random allocation, if they
  /// give none. The search needs no lower bound, and refined tables would only make epsilon
  /// smaller.
  static AccountantOptions with_points(AccountantOptions options) {
    if (options.allocation_points == 0) options.allocation_points = 1000;
    return options;
  }

  /// Throws std::domain_error if no value can fit the budget, because earlier releases (before_)
  /// have spent it, or because the Renyi orders cannot show an epsilon this small.
  void check_reachable() const {
    for (const double order : options_.orders) check_order(order);
    const bool first = before_.releases.empty();
    const auto nothing = [](std::size_t) { return 0.0; };
    const double min_epsilon = first ? lowest_epsilon(options_.orders, nothing, delta_).epsilon
                                     : Accountant(before_, options_).epsilon(delta_).epsilon;
    if (min_epsilon < epsilon_) return;
    throw std::domain_error("epsilon " + number(epsilon_) + " at delta " + number(delta_) +
                            " cannot be reached: " + number(min_epsilon) +
                            (first ? " is the smallest value that Renyi orders up to " +
                                         number(*std::ranges::max_element(options_.orders)) +
                                         " can show; larger orders can show a smaller one"
                                   : " is already spent"));
  }

  /// Returns log(epsilon / budget's epsilon), where epsilon is that of all releases if the unknown
  /// has the value e^v; <= 0 if that value fits the budget. Returns +infinity if the accountant
  /// finds no bound. relation: direction in which neighbours differ. options: the accountant's.
  double excess(double v, NeighbouringRelation relation, const AccountantOptions& options) const {
    Composition composition = before_;
    composition.relation = relation;
    const std::vector<Release> more = releases_at_(unknown_.value_at(v));
    composition.releases.insert(composition.releases.end(), more.begin(), more.end());
    try {
      Accountant accountant(std::move(composition), options);
      return std::log(std::fmax(accountant.epsilon(delta_).epsilon, 1e-9) / epsilon_);
    } catch (const std::domain_error&) {
      return infinity;
    }
  }

  AccountantOptions coarse_options() const {
    AccountantOptions options = options_;
    options.coarseness = 100.0;
    options.interval = 0.0;
    options.allocation_points = std::min<std::size_t>(options.allocation_points, 250);
    return options;
  }

  double coarse(double v) {
    // Root finding needs a finite value.
    return std::fmin(excess(v, worse(v), coarse_options()), 30.0);
  }

  /// Returns excess() on the usual grid, in the worse direction alone.
  double fine(double v) { return excess(v, worse(v), options_); }

  /// Returns whether a single epsilon from the accountant covers the whole relation. If not, the
  /// search computes epsilon for adding and for removing an example separately.
  bool examines_both() const {
    return before_.relation != NeighbouringRelation::add_or_remove ||
           options_.kind == AccountantKind::rdp || options_.kind == AccountantKind::advanced;
  }

  /// Returns the direction, add or remove, in which epsilon is larger; the first call decides it at
  /// the value e^v. The search computes epsilon in this direction alone, and checks the other one
  /// only when a value fits.
  NeighbouringRelation worse(double v) {
    if (examines_both()) return before_.relation;
    if (!worse_) {
      const AccountantOptions options = coarse_options();
      const double add = excess(v, NeighbouringRelation::add, options);
      const double remove = excess(v, NeighbouringRelation::remove, options);
      worse_ = add > remove ? NeighbouringRelation::add : NeighbouringRelation::remove;
    }
    return *worse_;
  }

  /// Returns the direction in which epsilon is not larger. Requires that worse() was called.
  NeighbouringRelation not_worse() const {
    return *worse_ == NeighbouringRelation::add ? NeighbouringRelation::remove
                                                : NeighbouringRelation::add;
  }

  Composition before_;
  AccountantOptions options_;
  std::function<std::vector<Release>(double)> releases_at_;
  Unknown unknown_;
  double epsilon_, delta_;
  std::optional<NeighbouringRelation> worse_;
};

/// Returns mu of the Gaussian mechanism, N(mu, 1) against N(0, 1), that is (epsilon, delta)-DP.
/// Used for initial guesses only.
double mu_for(double epsilon, double delta) {
  epsilon = std::clamp(epsilon, 1e-6, 1e6);
  delta = std::clamp(delta, 1e-300, 0.999);
  double low = -30.0, high = 15.0;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (gaussian_delta(std::exp(middle), epsilon) <= delta ? low : high) = middle;
  }
  return std::exp(low);
}

/// Sampling rate q and noise multiplier sigma of a release, converted to Poisson sampling in which
/// one unit of privacy changes the sum by 1. Used for initial guesses only.
struct Sampled {
  double q = 1.0, sigma = 1.0;
  double steps = 1.0;  ///< number of steps of one release; above 1 for an epoch
  /// Returns exp(1/sigma^2) - 1, with 1/sigma^2 capped at 500. By the central limit theorem, T
  /// sampled steps are about as private as one Gaussian mechanism with mu = q sqrt(T
  /// (exp(1/sigma^2) - 1)).
  double square() const { return std::expm1(std::fmin(1.0 / sigma / sigma, 500.0)); }
};

Sampled sampled(const Mechanism& mechanism, std::uint64_t group) {
  const auto k = static_cast<double>(group);
  if (const auto* m = std::get_if<Gaussian>(&mechanism)) return {1.0, m->sigma / k};
  if (const auto* m = std::get_if<PoissonGaussian>(&mechanism)) return {m->q, m->sigma / k};
  if (const auto* m = std::get_if<TruncatedPoissonGaussian>(&mechanism)) return {m->q, m->sigma};
  if (const auto* m = std::get_if<FixedSizeGaussian>(&mechanism))
    return {static_cast<double>(m->batch) / static_cast<double>(m->n), 0.5 * m->sigma / k};
  if (const auto* m = std::get_if<AllocatedGaussian>(&mechanism)) {
    const auto steps = static_cast<double>(m->steps);
    return {1.0 / steps, m->sigma / k, steps};
  }
  return {};
}

/// Throws std::invalid_argument if `release` releases nothing, because then every value would fit.
void check_releases(const Release& release) {
  check(release);
  if (releases_nothing(release))
    throw std::invalid_argument(
        "step: expected one that releases something, found no steps or q = 0");
}

[[noreturn]] void refuse(const char* what, const Mechanism& mechanism) {
  throw std::domain_error(std::string(what) + ": expected a step that has one, found " +
                          std::string(name(mechanism)));
}

/// Calls change(sigma) with the noise multiplier of a mechanism. Throws std::domain_error if it has
/// none.
template <class Change>
void change_sigma(Mechanism& mechanism, const Change& change) {
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.sigma; })
          change(m.sigma);
        else
          refuse("sigma", mechanism);
      },
      mechanism);
}

}  // namespace

double calibrate_sigma(const Composition& before, const Release& release, double epsilon,
                       double delta, const AccountantOptions& options) {
  const auto with = [release](double sigma) {
    Release made = release;
    change_sigma(made.mechanism, [&](double& s) { s = sigma; });
    return std::vector<Release>(1, made);
  };
  check_releases(with(1.0).front());
  const Sampled at = sampled(with(1.0).front().mechanism, before.group);
  const double mu = mu_for(epsilon, delta);
  const double steps = at.steps * std::fmax(static_cast<double>(release.count), 1.0);
  const double per_step = mu / at.q / std::sqrt(steps);
  const Unknown unknown{.what = "sigma",
                        .guess = 1.0 / at.sigma / std::sqrt(std::log1p(per_step * per_step)),
                        .safe_end = 1e9,
                        .greedy_end = 1e-3};
  return Solver(before, options, with, unknown, epsilon, delta).solve();
}

double calibrate_rate(const Composition& before, const Release& release, double epsilon,
                      double delta, const AccountantOptions& options) {
  const auto with = [release](double q) {
    Release made = release;
    std::visit(
        [&](auto& m) {
          if constexpr (requires { m.q; })
            m.q = q;
          else
            refuse("q", release.mechanism);
        },
        made.mechanism);
    return std::vector<Release>(1, made);
  };
  check_releases(with(1.0).front());
  const Sampled at = sampled(with(1.0).front().mechanism, before.group);
  const double mu = mu_for(epsilon, delta);
  const double one = std::sqrt(static_cast<double>(release.count) * at.square());
  // With listed Renyi orders the search goes down to rates of 1e-86. A low delta requires a large
  // order, and at a large order the divergence is small only if the rate is tiny.
  const Unknown unknown{.what = "q",
                        .guess = std::clamp(mu / one, 1e-9, 1.0),
                        .safe_end = lists_orders(before, options) ? 1e-86 : 1e-12,
                        .greedy_end = 1.0};
  return std::fmin(Solver(before, options, with, unknown, epsilon, delta).solve(), 1.0);
}

std::uint64_t calibrate_batch(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options) {
  const auto* fixed = std::get_if<FixedSizeGaussian>(&release.mechanism);
  if (fixed == nullptr) refuse("batch", release.mechanism);
  const auto with = [release](double batch) {
    Release made = release;
    std::get<FixedSizeGaussian>(made.mechanism).batch = static_cast<std::uint64_t>(batch);
    return std::vector<Release>(1, made);
  };
  const Sampled at = sampled(release.mechanism, before.group);
  const double mu = mu_for(epsilon, delta);
  const double one = std::sqrt(static_cast<double>(release.count) * at.square());
  const auto n = static_cast<double>(fixed->n);
  const Unknown unknown{.what = "batch",
                        .guess = std::clamp(std::round(n * mu / one), 1.0, n),
                        .safe_end = 1.0,
                        .greedy_end = n,
                        .whole = true};
  return static_cast<std::uint64_t>(Solver(before, options, with, unknown, epsilon, delta).solve());
}

std::uint64_t calibrate_steps(const Composition& before, const Release& release, double epsilon,
                              double delta, const AccountantOptions& options) {
  const auto with = [release](double count) {
    Release made = release;
    made.count = static_cast<std::uint64_t>(count);
    return std::vector<Release>(1, made);
  };
  check_releases(with(1.0).front());
  const Sampled at = sampled(release.mechanism, before.group);
  const double mu = mu_for(epsilon, delta);
  const double one = at.q * std::sqrt(at.steps * at.square());
  const Unknown unknown{.what = "steps",
                        .guess = std::clamp(std::round(mu * mu / one / one), 1.0, 0x1p40),
                        .safe_end = 1.0,
                        .greedy_end = 0x1p40,
                        .whole = true};
  return static_cast<std::uint64_t>(Solver(before, options, with, unknown, epsilon, delta).solve());
}

double calibrate_noise_factor(const Composition& before, std::span<const Release> releases,
                              double epsilon, double delta, const AccountantOptions& options) {
  const auto with = [releases](double factor) {
    std::vector<Release> made(releases.begin(), releases.end());
    for (Release& release : made)
      change_sigma(release.mechanism, [&](double& sigma) { sigma *= factor; });
    return made;
  };
  // First guess: the factor at which mu of all releases, by the central limit theorem, equals the
  // budget's mu.
  const double mu = mu_for(epsilon, delta);
  const auto square = [&](double factor) {
    double sum = 0.0;
    for (const Release& release : with(factor)) {
      const Sampled at = sampled(release.mechanism, before.group);
      sum += static_cast<double>(release.count) * at.steps * at.q * at.q * at.square();
    }
    return sum;
  };
  double low = -10.0, high = 20.0;
  while (high - low > 0.01) {
    const double middle = 0.5 * (low + high);
    (square(std::exp(middle)) > mu * mu ? low : high) = middle;
  }
  const Unknown unknown{
      .what = "noise factor", .guess = std::exp(high), .safe_end = 1e9, .greedy_end = 1e-9};
  return Solver(before, options, with, unknown, epsilon, delta).solve();
}

}  // namespace cudp::privacy
