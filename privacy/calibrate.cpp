#include "privacy/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "privacy/math/boundary.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Tolerances of a Solver's search for the value at which epsilon just fits the budget. The search
/// stops at a value whose log(epsilon) is below log(budget's epsilon) by at most `epsilon`;
/// Newton's steps aim at the difference `aim`, so that they end on the side that fits. It also
/// stops if a value that fits and one that does not are at a relative distance of at most `value`.
/// move: smallest relative step between whole numbers.
struct Tolerance {
  double epsilon, aim;
  double value, move;
  double exact;  ///< whole numbers below this number are found exactly
};
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

/// Description of the number that a Solver searches, e.g. the noise multiplier: its name (what), a
/// first guess, and the ends of the search. safe_end: the end at which least privacy is spent; if
/// the budget does not suffice there, it suffices nowhere. greedy_end: the end at which most is
/// spent. The search is on a logarithmic scale.
struct Unknown {
  const char* what = "";
  double guess = 1.0;
  double safe_end = 0.0, greedy_end = 0.0;
  bool whole = false;  ///< whether only whole numbers are allowed
};

/// Finds the value x of one unknown with which a composition just stays within its budget (epsilon,
/// delta). The search is for a zero of g(v) = log(epsilon at x / budget's epsilon), v = log x; x
/// fits if g(v) <= 0. First an accountant with a coarse grid finds two values around the zero, and
/// the slope of g. Then Newton's steps use the usual grid; they stay between `good`, a v that fits,
/// and `bad`, one that does not.
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
        delta_(delta),
        tolerance_(lists_orders(before_, options_) ? at_listed_orders : usual) {
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
    const double safe = log_of(unknown_.safe_end), greedy = log_of(unknown_.greedy_end);
    const double toward_greedy = greedy > safe ? 1.0 : -1.0;
    const auto clamp = [&](double v) {
      return std::clamp(v, std::fmin(safe, greedy), std::fmax(safe, greedy));
    };

    // A coarse bracket around the guess, then a coarse root.
    double v = clamp(log_of(unknown_.guess)), g = coarse(v), good = v, bad = v;
    for (double width = 0.1;; width *= 2.0) {
      if (g <= 0.0) {
        good = v;
        if (v == greedy) break;
        v = clamp(v + toward_greedy * width);
        g = coarse(v);
        if (g <= 0.0) continue;
        bad = v;
        break;
      }
      bad = v;
      if (v == safe) break;
      v = clamp(v - toward_greedy * width);
      g = coarse(v);
      if (g > 0.0) continue;
      good = v;
      break;
    }
    if (good != bad) v = safe_boundary([this](double at) { return coarse(at); }, bad, good, 1e-3);
    const double derivative_step = 0.01 * -toward_greedy;
    double derivative = (coarse(clamp(v + derivative_step)) - coarse(v)) / derivative_step;
    if (!(std::fabs(derivative) > 0.01 && std::fabs(derivative) < 1e3)) derivative = toward_greedy;

    // Newton's steps on the usual grid, kept between a value known to fit and one known not to fit.
    good = safe - toward_greedy;  // nothing known
    bad = greedy + toward_greedy;
    double last_v = 0.0, last_g = infinity, least_move = 1.0;
    bool good_is_confirmed = false;
    for (int round = 0; round < 60; ++round) {
      v = snap(clamp(v));
      g = fine(v);
      // The other direction takes as long again. It is not computed at the first value, unless that
      // may be the result.
      const bool is_confirmed =
          round > 0 || unknown_.whole || g > -tolerance_.epsilon || v == greedy;
      if (is_confirmed) g = confirmed(v, g);
      if (g <= 0.0) {
        good = v;
        good_is_confirmed = is_confirmed;
        if (g > -tolerance_.epsilon && !(unknown_.whole && value_of(v) < tolerance_.exact)) break;
        if (v == greedy) break;
      } else {
        if (v == safe)
          throw std::domain_error(std::string(unknown_.what) + ": none from " +
                                  number(unknown_.safe_end) + " to " + number(unknown_.greedy_end) +
                                  " reaches epsilon " + number(epsilon_) + " at delta " +
                                  number(delta_));
        bad = v;
      }
      if (between(good, bad)) {
        if (good_is_confirmed) break;
        v = good;  // the other direction was not computed there
        g = confirmed(v, -infinity);
        good_is_confirmed = true;
        if (g <= 0.0) break;
        bad = v;
        good = safe - toward_greedy;
      }
      if (std::isfinite(last_g) && std::isfinite(g) && v != last_v &&
          (g - last_g) / (v - last_v) * derivative > 0.0)
        derivative = (g - last_g) / (v - last_v);
      last_v = v;
      last_g = g;
      double next = std::isfinite(g) ? v - (g + tolerance_.aim) / derivative : v - toward_greedy;
      // A value not strictly between the two gives no new information.
      const bool bracketed =
          (good - safe) * toward_greedy >= 0.0 && (greedy - bad) * toward_greedy >= 0.0;
      const auto inside = [&](double at) {
        return (at - good) * toward_greedy > 0.0 && (bad - at) * toward_greedy > 0.0;
      };
      if (bracketed && (!inside(next) || round > 6)) next = 0.5 * (good + bad);
      if (unknown_.whole && snap(clamp(next)) == v) {
        // Moves by the required accuracy, and by twice as much each time that does not pass the
        // root.
        const double move = least_move * std::fmax(1.0, tolerance_.move * value_of(v));
        next = log_of(
            std::fmax(value_of(v) + move * (g <= 0.0 ? toward_greedy : -toward_greedy), 1.0));
        least_move *= 2.0;
        if (bracketed && !inside(next)) next = 0.5 * (good + bad);
      }
      v = next;
    }
    if (!good_is_confirmed && confirmed(good, fine(good)) > 0.0)
      throw std::domain_error(std::string(unknown_.what) + ": the search does not converge");
    return value_of(good);
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

  static double log_of(double x) { return std::log(x); }
  double value_of(double v) const {
    const double x = std::exp(v);
    return unknown_.whole ? std::round(x) : x;
  }
  double snap(double v) const { return unknown_.whole ? log_of(std::fmax(value_of(v), 1.0)) : v; }

  /// Returns whether the search may stop, because `good` (log of a value that fits the budget) and
  /// `bad` (log of one that does not) are close enough.
  bool between(double good, double bad) const {
    if (unknown_.whole) {
      const double gap = std::fabs(value_of(bad) - value_of(good));
      return gap <= std::fmax(1.0, tolerance_.value * value_of(good));
    }
    return std::fabs(good - bad) < tolerance_.value;
  }

  /// Returns log(epsilon / budget's epsilon), with the epsilon of all releases if the unknown has
  /// the value e^v; <= 0 if the value fits. relation: direction in which neighbours differ.
  /// options: the accountant's.
  double excess(double v, NeighbouringRelation relation, const AccountantOptions& options) const {
    Composition composition = before_;
    composition.relation = relation;
    const std::vector<Release> more = releases_at_(value_of(v));
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

  /// Returns excess() on the usual grid in all directions of the relation, or `g` if that is
  /// positive. g: fine(v).
  double confirmed(double v, double g) {
    const NeighbouringRelation first = worse(v);
    if (g > 0.0 || first == before_.relation) return g;
    const bool add = first == NeighbouringRelation::add;
    return std::fmax(
        g, excess(v, add ? NeighbouringRelation::remove : NeighbouringRelation::add, options_));
  }

  /// Returns the direction, add or remove, in which epsilon is larger; the first call decides it at
  /// the value e^v. The search computes epsilon in this direction alone, and checks the other one
  /// only when a value fits.
  NeighbouringRelation worse(double v) {
    if (before_.relation != NeighbouringRelation::add_or_remove ||
        options_.kind == AccountantKind::rdp || options_.kind == AccountantKind::advanced)
      return before_.relation;
    if (!worse_) {
      const AccountantOptions options = coarse_options();
      const double add = excess(v, NeighbouringRelation::add, options);
      const double remove = excess(v, NeighbouringRelation::remove, options);
      worse_ = add > remove ? NeighbouringRelation::add : NeighbouringRelation::remove;
    }
    return *worse_;
  }

  Composition before_;
  AccountantOptions options_;
  std::function<std::vector<Release>(double)> releases_at_;
  Unknown unknown_;
  double epsilon_, delta_;
  Tolerance tolerance_;
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
  // A large order, which a low delta requires, helps only at tiny rates.
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
  // Central-limit mu of all releases, at the factor at which it equals the budget's.
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
