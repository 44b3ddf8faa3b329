#include "privacy/accountant.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "privacy/known_losses.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/pld/composed_loss.hpp"
#include "privacy/pld/distinct_releases.hpp"
#include "privacy/rdp/advanced.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Numbers of points of the tables that bound the privacy loss of an epoch of random allocation, if
/// AccountantOptions::allocation_points is 0. Bounds with a coarseness of 100 or more use
/// kCoarsePoints. Other bounds start with kFirstPoints. They double the number, up to kMaxPoints,
/// until the gap between upper and lower bound is small enough (kEpsilonGap, kDeltaGap).
constexpr std::size_t kCoarsePoints = 250, kFirstPoints = 1000, kMaxPoints = 8000;
/// Largest relative gaps between upper and lower bound, on epsilon and on delta, that are accepted.
/// If a gap is larger, the tables for epochs of random allocation get twice as many points.
constexpr double kEpsilonGap = 2e-4, kDeltaGap = 5e-3;

/// Returns mu of the single Gaussian mechanism, N(mu, 1) against N(0, 1), that is equivalent to all
/// releases together, rounded up. Returns nullopt if one of the releases is not plain Gaussian
/// noise. composition: the releases.
std::optional<double> gaussian_mu(const Composition& composition) {
  double square = 0.0;
  for (const Release& release : composition.releases) {
    const auto* m = std::get_if<Gaussian>(&release.mechanism);
    const auto* p = std::get_if<PoissonGaussian>(&release.mechanism);
    const auto* a = std::get_if<AllocatedGaussian>(&release.mechanism);
    double sigma = 0.0;
    if (m != nullptr)
      sigma = m->sigma;
    else if (p != nullptr && p->q == 1.0)
      sigma = p->sigma;
    else if (a != nullptr && a->steps == 1)
      sigma = a->sigma;
    else
      return std::nullopt;
    square += static_cast<double>(release.count) / sigma / sigma;
  }
  const double moved = composition.relation == NeighbouringRelation::replace_one ? 2.0 : 1.0;
  return moved * static_cast<double>(composition.group) * std::sqrt(square) * (1.0 + 1e-14);
}

/// Pointers to the members of PrivacyBound that one computation fills: those of epsilon (kEpsilon,
/// for a given delta) or those of delta (kDelta, for a given epsilon). A function with a parameter
/// of this type can compute either.
struct Field {
  double PrivacyBound::*value;
  double PrivacyBound::*lower;
  std::optional<double> PrivacyBound::*add;
  std::optional<double> PrivacyBound::*remove;
};
/// The fields of a bound on epsilon at a given delta.
constexpr Field kEpsilon{&PrivacyBound::epsilon, &PrivacyBound::epsilon_lower,
                         &PrivacyBound::epsilon_add, &PrivacyBound::epsilon_remove};
/// The fields of a bound on delta at a given epsilon.
constexpr Field kDelta{&PrivacyBound::delta, &PrivacyBound::delta_lower, &PrivacyBound::delta_add,
                       &PrivacyBound::delta_remove};

bool includes(AccountantKind requested, AccountantKind one) {
  return requested == one || requested == AccountantKind::best;
}

}  // namespace

/// Implementation of Accountant: the composition, and the intermediate results of earlier calls.
struct Accountant::State {
  Composition composition;
  AccountantOptions options;
  std::optional<double> mu;
  /// number of epochs of random allocation (AllocatedGaussian) among the releases
  double allocated = 0.0;

  /// Key of `losses`, the composed privacy loss distributions that are computed so far: the
  /// direction (add or remove), and the accuracy of the tables that bound epochs of random
  /// allocation.
  using Key = std::pair<Change, pld::AllocationGrid>;
  std::map<Key, pld::ComposedLoss> losses;

  /// For each key, the delta of an answer that came from the cache (known_epsilon()) while `losses`
  /// had no distribution for the key. A ComposedLoss keeps intermediate results, on which its later
  /// answers depend. So loss() computes epsilon at this delta first when it makes the distribution.
  /// All answers are then the same as without the cache.
  std::map<Key, double> looked_up;

  /// Returns whether lower bounds on the loss of epochs of random allocation are computed, for
  /// epsilon_lower. They need a second table for each epoch. Returns true if there are no such
  /// epochs: the value then has no effect, and a constant keeps the key of cached results
  /// (LossQuestion) independent of the options.
  bool from_below() const {
    return (options.allocation_points == 0 && has_lower()) || allocated == 0.0;
  }
  /// Returns whether lower bounds are computed. Coarse bounds have none.
  bool has_lower() const { return options.coarseness == 1.0; }

  pld::ComposedLoss& loss(const Key& key) {
    const auto found = losses.find(key);
    if (found != losses.end()) return found->second;
    pld::ComposedLoss& made =
        losses
            .emplace(key,
                     pld::ComposedLoss(pld::distinct_losses(
                                           composition.releases, key.first, composition.group,
                                           options.max_distinct_releases, key.second, from_below()),
                                       {.interval = options.interval,
                                        .coarseness = options.coarseness,
                                        .lower = has_lower()}))
            .first->second;
    // Repeats the answer that came from the cache (looked_up). Computing it would have left a view,
    // on which later answers depend.
    if (const auto before = looked_up.find(key); before != looked_up.end())
      (void)made.epsilon(before->second);
    return made;
  }

  /// Returns the size and accuracy of the first tables that are tried for epochs of random
  /// allocation: the number of points, and the probability that a table may leave out (cut), which
  /// is so small that bounds at this delta stay accurate.
  pld::AllocationGrid first_grid(double delta) const {
    if (allocated == 0.0) return {};
    std::size_t points = options.allocation_points;
    if (points == 0) points = options.coarseness >= 100.0 ? kCoarsePoints : kFirstPoints;
    // All epochs together leave out at most a millionth of delta. The cut is rounded down to a
    // power of 10^4, so that bounds at other deltas use the same table.
    const double exact = 1e-7 * delta / allocated;
    const double cut = std::pow(1e4, std::floor(std::log10(exact) / 4.0));
    return {.points = points, .cut = std::clamp(cut, 1e-130, 1e-8)};
  }

  /// Improves bounds on a composition with epochs of random allocation: doubles the size of the
  /// tables until the upper and the lower bound in `best` differ by less than the fraction
  /// `allowed` of the upper one, or until a doubling has closed less than 40 % of the gap. best: on
  /// entry the bounds with tables of size `grid`. field: the fields to improve. at(grid): computes
  /// the bounds with tables of that size. At: type of the function at().
  template <class At>
  void refine(PrivacyBound& best, pld::AllocationGrid grid, const Field& field, double allowed,
              const At& at) const {
    if (allocated == 0.0 || options.allocation_points != 0 || options.coarseness > 1.0) return;
    double& upper = best.*field.value;
    double& lower = best.*field.lower;
    for (double last = infinity; grid.points < kMaxPoints;) {
      const double gap = std::isfinite(upper) ? 1.0 - lower / upper : 0.0;
      if (!(gap > allowed && gap < 0.6 * last)) return;
      last = gap;
      grid.points *= 2;
      const PrivacyBound found = at(grid);
      upper = std::fmin(upper, found.*field.value);
      lower = std::fmax(lower, found.*field.lower);
      best.interval = found.interval;
    }
  }

  PrivacyBound loss_epsilon(Change change, double delta) {
    const pld::AllocationGrid grid = first_grid(delta);
    const auto at = [&](const pld::AllocationGrid& of) {
      return loss_epsilon(Key{change, of}, delta);
    };
    PrivacyBound best = at(grid);
    refine(best, grid, kEpsilon, kEpsilonGap, at);
    return best;
  }

  PrivacyBound loss_delta(Change change, double epsilon) {
    if (allocated == 0.0) return loss({change, {}}).delta(epsilon);
    // The accuracy of the tables (AllocationGrid::cut) depends on delta, which is the result.
    // Starts with the cut for delta = 1e-5, and repeats with a smaller one if the delta found
    // requires it.
    const auto at = [&](const pld::AllocationGrid& of) {
      return loss({change, of}).delta(epsilon);
    };
    pld::AllocationGrid grid = first_grid(1e-5);
    PrivacyBound best = at(grid);
    for (pld::AllocationGrid next = first_grid(best.delta); next.cut < grid.cut;
         next = first_grid(best.delta)) {
      grid = next;
      const double before = best.delta;
      best = at(grid);
      best.delta = std::fmin(best.delta, before);
    }
    refine(best, grid, kDelta, kDeltaGap, at);
    return best;
  }

  /// Returns the bound on epsilon at delta from the loss distribution of this key. The first call
  /// for a key looks into the cache (known_epsilon()); later calls use the distribution itself.
  PrivacyBound loss_epsilon(const Key& key, double delta) {
    if (losses.contains(key) || looked_up.contains(key)) return loss(key).epsilon(delta);
    LossQuestion question{.releases = composition.releases,
                          .change = key.first,
                          .group = composition.group,
                          .max_distinct_releases = options.max_distinct_releases,
                          .grid = key.second,
                          .from_below = from_below(),
                          .interval = options.interval,
                          .coarseness = options.coarseness,
                          .delta = delta};
    if (const std::optional<PrivacyBound> known = known_epsilon(question)) {
      looked_up.emplace(key, delta);
      return *known;
    }
    const PrivacyBound found = loss(key).epsilon(delta);
    keep_epsilon(std::move(question), found);
    return found;
  }

  Neighbours neighbours() const {
    return {.relation = composition.relation, .group = composition.group};
  }

  /// Calls bound(neighbours), which computes a bound from Renyi divergences, if the options request
  /// that kind of bound. If they request other kinds too, its exceptions are ignored, because Renyi
  /// divergences are unknown or infinite for some mechanisms. Bound: type of the function `bound`.
  template <class Bound>
  void by_renyi(const Bound& bound) const {
    if (!includes(options.kind, AccountantKind::rdp)) return;
    if (options.kind == AccountantKind::rdp) return bound(neighbours());
    // Uses the bound for both directions even if one is requested: a single direction is never
    // worse than both.
    Neighbours both = neighbours();
    if (both.relation != NeighbouringRelation::replace_one)
      both.relation = NeighbouringRelation::add_or_remove;
    try {
      bound(both);
    } catch (const std::domain_error&) {
      return;
    } catch (const std::invalid_argument&) {
      return;
    }
  }

  /// Computes epsilon or delta (`field`) by each kind of bound that the options request, and
  /// returns the smallest bound. The four functions compute one kind each: by_loss from privacy
  /// loss distributions, by_mu from the mu of a single Gaussian, by_composition by advanced
  /// composition, by_renyi_at from Renyi divergences. bound: the result to start from, with the
  /// given delta or epsilon and the largest possible value in `field`.
  template <class ByLoss, class ByMu, class ByComposition, class ByRenyi>
  PrivacyBound bound(const Field& field, PrivacyBound bound, const ByLoss& by_loss,
                     const ByMu& by_mu, const ByComposition& by_composition,
                     const ByRenyi& by_renyi_at) {
    const AccountantKind kind = options.kind;
    bound.accountant = kind;
    bound.group = composition.group;
    double& value = bound.*field.value;
    if (composition.releases.empty()) {
      value = 0.0;
      return bound;
    }
    if (includes(kind, AccountantKind::pld)) {
      value = 0.0;
      bound.accountant = AccountantKind::pld;
      for (const Change change : changes_of(composition.relation)) {
        const PrivacyBound found = by_loss(change);
        if (change == Change::add) bound.*field.add = found.*field.value;
        if (change == Change::remove) bound.*field.remove = found.*field.value;
        value = std::fmax(value, found.*field.value);
        bound.*field.lower = std::fmax(bound.*field.lower, found.*field.lower);
        bound.interval = std::fmax(bound.interval, found.interval);
      }
    }
    const auto improve = [&](double found, AccountantKind by, double order) {
      for (std::optional<double>* direction : {&(bound.*field.add), &(bound.*field.remove)})
        if (*direction) *direction = std::fmin(**direction, found);
      if (!(found < value)) return;
      value = found;
      bound.accountant = by;
      bound.order = order;
    };
    if (includes(kind, AccountantKind::best) && mu) improve(by_mu(*mu), AccountantKind::best, 0.0);
    if (kind == AccountantKind::advanced) improve(by_composition(), AccountantKind::advanced, 0.0);
    by_renyi([&](const Neighbours& neighbours) {
      const PrivacyBound rdp = by_renyi_at(neighbours);
      improve(rdp.*field.value, AccountantKind::rdp, rdp.order);
    });
    bound.*field.lower = std::fmin(bound.*field.lower, value);
    return bound;
  }
};

Accountant::Accountant(Composition composition, AccountantOptions options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.composition = std::move(composition);
  s.options = std::move(options);
  Composition& c = s.composition;
  const AccountantOptions& o = s.options;
  check_group(c.group);
  if (!(o.interval >= 0.0 && o.interval <= 1.0))
    throw std::invalid_argument("interval: expected a number in [0, 1], found " +
                                number(o.interval));
  if (!(o.coarseness >= 1.0 && o.coarseness <= 1e4))
    throw std::invalid_argument("coarseness: expected a number in [1, 1e4], found " +
                                number(o.coarseness));
  for (const Release& release : c.releases) check(release);
  if (o.allocation_points != 0 && !(o.allocation_points >= 16 && o.allocation_points <= kMaxPoints))
    throw std::invalid_argument("allocation_points: expected 0, or 16 to 8000, found " +
                                std::to_string(o.allocation_points));
  for (const double order : o.orders) check_order(order);
  std::erase_if(c.releases, [](const Release& release) { return releases_nothing(release); });
  s.mu = gaussian_mu(c);
  s.allocated = pld::allocated_epochs(c.releases);
}

Accountant::~Accountant() = default;
Accountant::Accountant(Accountant&&) noexcept = default;
Accountant& Accountant::operator=(Accountant&&) noexcept = default;
const Composition& Accountant::composition() const { return state_->composition; }
const AccountantOptions& Accountant::options() const { return state_->options; }

PrivacyBound Accountant::epsilon(double delta) {
  check_delta(delta);
  State& s = *state_;
  const std::vector<Release>& releases = s.composition.releases;
  const PrivacyBound bound = s.bound(
      kEpsilon, {.epsilon = infinity, .delta = delta},
      [&](Change change) { return s.loss_epsilon(change, delta); },
      [&](double mu) { return gaussian_epsilon(mu, delta); },
      [&] { return advanced_epsilon(releases, delta, s.neighbours()); },
      [&](const Neighbours& n) {
        return known_epsilon_by_rdp(releases, delta, n, s.options.orders);
      });
  if (!std::isfinite(bound.epsilon))
    throw std::domain_error("no finite epsilon can be shown at delta " + number(delta) +
                            " by the accountant " + std::string(name(s.options.kind)));
  return bound;
}

PrivacyBound Accountant::delta(double epsilon) {
  check_epsilon(epsilon);
  State& s = *state_;
  const std::vector<Release>& releases = s.composition.releases;
  return s.bound(
      kDelta, {.epsilon = epsilon, .delta = 1.0},
      [&](Change change) { return s.loss_delta(change, epsilon); },
      [&](double mu) { return gaussian_delta(mu, epsilon); },
      [&] { return advanced_delta(releases, epsilon, s.neighbours()); },
      [&](const Neighbours& n) { return delta_by_rdp(releases, epsilon, n, s.options.orders); });
}

std::vector<PrivacyBound> Accountant::epsilons(std::span<const double> deltas) {
  std::vector<PrivacyBound> bounds;
  bounds.reserve(deltas.size());
  for (const double delta : deltas) bounds.push_back(epsilon(delta));
  return bounds;
}

std::vector<PrivacyBound> Accountant::deltas(std::span<const double> epsilons) {
  std::vector<PrivacyBound> bounds;
  bounds.reserve(epsilons.size());
  for (const double epsilon : epsilons) bounds.push_back(delta(epsilon));
  return bounds;
}

std::vector<PrivacyBound> Accountant::profile(std::span<const double> epsilons, double least) {
  for (const double epsilon : epsilons) check_epsilon(epsilon);
  State& s = *state_;
  std::vector<PrivacyBound> bounds(epsilons.size());
  // Computes each bound by itself if loss distributions are not requested, or if there are epochs
  // of random allocation: their tables depend on the delta of each bound.
  if (!s.composition.releases.empty() &&
      (!includes(s.options.kind, AccountantKind::pld) || s.allocated > 0.0))
    return deltas(epsilons);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    bounds[i].epsilon = epsilons[i];
    bounds[i].accountant = AccountantKind::pld;
    bounds[i].group = s.composition.group;
  }
  if (s.composition.releases.empty()) return bounds;
  for (const Change change : changes_of(s.composition.relation)) {
    const std::vector<double> found =
        s.mu ? std::vector<double>(epsilons.size()) : s.loss({change, {}}).curve(epsilons, least);
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const double delta = s.mu ? gaussian_delta(*s.mu, epsilons[i]) : found[i];
      if (change == Change::add) bounds[i].delta_add = delta;
      if (change == Change::remove) bounds[i].delta_remove = delta;
      bounds[i].delta = std::fmax(bounds[i].delta, delta);
    }
  }
  return bounds;
}

std::vector<PrivacyBound> group_epsilons(const Composition& composition,
                                         std::span<const std::uint64_t> sizes, double delta,
                                         const AccountantOptions& options) {
  std::vector<PrivacyBound> bounds;
  bounds.reserve(sizes.size());
  for (const std::uint64_t k : sizes) {
    Composition one = composition;
    one.group = k;
    bounds.push_back(Accountant(std::move(one), options).epsilon(delta));
  }
  return bounds;
}

std::vector<PrivacyBound> group_epsilons(const Composition& composition, std::uint64_t largest,
                                         double delta, const AccountantOptions& options) {
  std::vector<std::uint64_t> sizes(largest);
  std::iota(sizes.begin(), sizes.end(), 1);
  return group_epsilons(composition, sizes, delta, options);
}

std::optional<double> vadhan_epsilon(const Composition& composition, std::uint64_t k, double delta,
                                     const AccountantOptions& options) {
  check_delta(delta);
  Composition single = composition;
  single.group = 1;
  Accountant accountant(std::move(single), options);
  const auto size = static_cast<double>(k);
  // Returns log of (e^(k epsilon) - 1) / (e^epsilon - 1).
  const auto log_factor = [&](double epsilon) {
    const auto log_expm1 = [](double x) {
      return x > 1.0 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
    };
    return epsilon > 0.0 ? log_expm1(size * epsilon) - log_expm1(epsilon) : std::log(size);
  };
  const auto within = [&](double epsilon) {
    const double found = accountant.delta(epsilon).delta;
    return found == 0.0 || std::log(found) + log_factor(epsilon) <= std::log(delta);
  };
  double low = accountant.epsilon(delta).epsilon, high = low;
  if (within(low)) return size * low;
  for (int i = 0; !within(high); ++i) {
    if (i == 12) return std::nullopt;
    low = high;
    high *= 1.4;
  }
  while (high - low > 1e-3 * high) {
    const double middle = 0.5 * (low + high);
    (within(middle) ? high : low) = middle;
  }
  return size * high;
}

}  // namespace cudp::privacy
