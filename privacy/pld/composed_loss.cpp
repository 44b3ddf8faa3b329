#include "privacy/pld/composed_loss.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "privacy/math/constants.hpp"
#include "privacy/pld/fft_cache.hpp"
#include "privacy/pld/lattice.hpp"
#include "privacy/pld/window.hpp"

namespace cudp::privacy::pld {
namespace {

constexpr double coarse = 1e-2,
                 fine = 1e-6;  // tolerances of the atoms, relative to the tilted variance
constexpr std::size_t shortest = std::size_t{1} << 10, usual = std::size_t{1} << 17;
constexpr std::size_t few_terms = 16;
/// Largest gap between the bounds on epsilon, as a fraction of the upper one, that is accepted. If
/// it is larger, the bounds are computed again with a wider range of losses.
constexpr double kLooseGap = 6e-3;

/// Returns the largest relative error of epsilon that rounding the losses to a lattice may cause,
/// given the length of the Fourier transform. With a long transform a larger error is allowed,
/// because a finer lattice would make the transform even longer and slower.
double loss_allowed(std::size_t length) {
  if (length < usual) return 2e-5;
  return 1.2e-4 * std::sqrt(static_cast<double>(length) / static_cast<double>(usual));
}

}  // namespace

/// The `count` equal releases of one DistinctLoss, with discrete distributions that bound the loss
/// of each.
struct ComposedLoss::Term {
  Term(PrivacyLoss loss_above, PrivacyLoss loss_below, bool one, std::uint64_t releases)
      : above(std::move(loss_above)), below(std::move(loss_below)), same(one), count(releases) {}
  /// Upper and lower bound on the loss, divided into coarse atoms. make_view() refines copies of
  /// them, and leaves these coarse.
  DiscretePld above, below;
  bool same;
  std::uint64_t count;
};

/// Upper bound on the loss of each of a term's releases, and its moments under a view's tilt.
struct ComposedLoss::TiltedAtoms {
  LoggedAtoms atoms;
  Moments at;
};

/// Distribution of the composed loss, computed under one exponential tilt: probabilities are
/// multiplied by e^(tilt loss) and normalised. Its bounds are accurate for epsilons near the mean
/// of the tilted loss, so different epsilons need different views.
struct ComposedLoss::View {
  double tilt = 0.0, negligible = 0.0;
  double mean = 0.0, deviation = 0.0, interval = 0.0, top = 0.0;
  std::size_t length = 0;
  std::unique_ptr<LatticeSum> above, below;
};

ComposedLoss::ComposedLoss(std::vector<DistinctLoss> losses, Options options) : options_(options) {
  // With many different losses the discretisation is 20 times as coarse, because each loss needs
  // Fourier transforms. So many losses usually come from grouping similar releases, which costs
  // more accuracy.
  if (losses.size() > few_terms && options_.interval == 0.0) options_.coarseness *= 20.0;
  terms_.reserve(losses.size());
  for (DistinctLoss& one : losses) {
    if (one.same) one.below = {};
    terms_.emplace_back(std::move(one.above), std::move(one.below), one.same, one.count);
  }
}

ComposedLoss::~ComposedLoss() = default;
ComposedLoss::ComposedLoss(ComposedLoss&&) noexcept = default;
ComposedLoss& ComposedLoss::operator=(ComposedLoss&&) noexcept = default;

Moments ComposedLoss::total_moments(double tilt) const {
  Moments total;
  for (const Term& one : terms_) {
    const Moments each = moments(one.above.logged_upper(), tilt);
    const auto n = static_cast<double>(one.count);
    total.log_sum += n * each.log_sum;
    total.mean += n * each.mean;
    total.variance += n * each.variance;
  }
  // Lower limit on the variance, so that the resolution of a sum with almost no variance stays
  // limited.
  total.variance = std::fmax(total.variance, 1e-8 * total.mean * total.mean);
  return total;
}

/// Finds a tilt together with the atoms (discrete losses) that are refined for it: refines the
/// atoms and calls solve(), which returns a tilt, until the tilt changes by at most 10 %; at most
/// five times. negligible: probability that may be left out when atoms are refined. Solve: type of
/// the function.
template <class Solve>
double ComposedLoss::settle_tilt(double negligible, const Solve& solve) {
  double tilt = 1.0;
  for (int round = 0; round < 5; ++round) {
    for (Term& one : terms_) one.above.refine(tilt, coarse, negligible);
    const double before = tilt;
    tilt = solve();
    if (std::fabs(tilt - before) <= 0.1 * before) break;
  }
  return tilt;
}

/// Searches for a tilt between 1e-6 and 1e9 by bisection. low_enough(moments, tilt): returns
/// whether the tilt is not too large; must change from true to false as the tilt increases. Returns
/// the tilt at which it changes, but at most about 40 divided by the standard deviation of the
/// tilted loss, because larger tilts are never useful. moments_at(tilt): returns the moments of the
/// loss under a tilt. Moments, LowEnough: types of the functions.
template <class Moments, class LowEnough>
static double bisect_tilt(const Moments& moments_at, const LowEnough& low_enough) {
  double low = std::log(1e-6), high = std::log(1e9);
  for (int i = 0; i < 16; ++i) {
    const double middle = 0.5 * (low + high), tilt = std::exp(middle);
    const auto at = moments_at(tilt);
    const bool worth = tilt * std::sqrt(at.variance) <= 40.0;
    (worth && low_enough(at, tilt) ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

/// Returns an estimate of log delta by the saddle point method, for the epsilon that is the mean of
/// the loss under this tilt. It decreases with the tilt. at: the moments of the loss under the
/// tilt.
static double log_delta_near(const Moments& at, double tilt) {
  return at.log_sum - tilt * at.mean - std::log1p(tilt) -
         std::log1p(tilt * std::sqrt(2.0 * std::numbers::pi * at.variance));
}

/// Returns the exponential tilt at which the bound on epsilon at this delta is tightest (the saddle
/// point). Bounds hold at any tilt.
double ComposedLoss::tilt_for_delta(double delta) {
  const double target = std::log(delta);
  return settle_tilt(negligible_for(delta), [&] {
    return bisect_tilt(
        [&](double tilt) { return total_moments(tilt); },
        [&](const Moments& at, double tilt) { return log_delta_near(at, tilt) > target; });
  });
}

/// Returns the tilt under which the mean of the loss is epsilon. Sets `delta` to approximately the
/// delta at this epsilon.
double ComposedLoss::tilt_for_epsilon(double epsilon, double& delta) {
  double tilt = 0.0;
  delta = 1e-30;
  for (int round = 0; round < 3; ++round) {
    tilt = settle_tilt(negligible_for(delta), [&] {
      return bisect_tilt([&](double at) { return total_moments(at); },
                         [&](const Moments& at, double) { return at.mean < epsilon; });
    });
    const double before = delta;
    delta = std::fmax(std::exp(log_delta_near(total_moments(tilt), tilt)), 1e-45);
    if (delta <= 100.0 * before && delta >= 0.01 * before) break;
  }
  return tilt;
}

/// Returns the probability that each release may leave out so that all of them together leave out
/// at most 1e-7 delta.
double ComposedLoss::negligible_for(double delta) const {
  double count = 0.0;
  for (const Term& one : terms_) count += static_cast<double>(one.count);
  return 1e-7 * delta / count;
}

/// Returns the interval to which the losses are rounded. atoms: distribution of each term's loss.
/// tilt: the view's. span: width of the range of composed losses.
double ComposedLoss::choose_interval(std::span<const TiltedAtoms> atoms, double tilt,
                                     double span) const {
  // K(tilt) = log E[e^(tilt L)], with L the composed loss. At the epsilon that is the tilted mean,
  // an increase of K by x increases epsilon by x / tilt.
  double mean = 0.0;
  for (std::size_t i = 0; i < terms_.size(); ++i)
    mean += static_cast<double>(terms_[i].count) * atoms[i].at.mean;
  const double one_part = tilt * std::fmax(mean, 1e-3 * span);
  std::vector<AddedLogSum> by_term;
  by_term.reserve(terms_.size());
  for (const TiltedAtoms& one : atoms) by_term.emplace_back(one.atoms, tilt, one.at.log_sum);
  // Returns how much rounding the losses to multiples of this interval adds to epsilon, as a
  // fraction of epsilon. If the fraction is above `allowed`, the result may be any number above
  // `allowed`. For speed, the sum over a term's atoms then ends as soon as it is twice the amount
  // that is allowed for all terms. (The increase by each loss is >= 0, except for rounding errors
  // below 1e-12.)
  const auto added = [&](double interval, double allowed) {
    double sum = 0.0;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const auto n = static_cast<double>(terms_[i].count);
      sum += n * by_term[i].at(interval, 2.0 * allowed * one_part / n + 1e-9);
    }
    return sum / one_part;
  };
  double requested = options_.interval;
  if (requested == 0.0 && options_.coarseness == 1.0 && added(1e-4, 2e-4) <= 2e-4) requested = 1e-4;
  if (requested > 0.0) {
    double interval = requested;
    while (true) {
      const std::size_t length = length_for(span, interval);
      if (length <= usual) return interval;
      const double allowed = options_.coarseness * loss_allowed(length / 2);
      if (length <= options_.longest && added(2.0 * interval, allowed) > allowed) return interval;
      interval *= 2.0;
    }
  }
  for (std::size_t length = shortest;; length *= 2) {
    const double interval = span / static_cast<double>(length - 2);
    const double allowed = options_.coarseness * loss_allowed(length);
    if (length >= options_.longest || added(interval, allowed) <= allowed) return interval;
  }
}

std::unique_ptr<ComposedLoss::View> ComposedLoss::make_view(double tilt, double negligible,
                                                            bool both, bool wide) {
  auto view = std::make_unique<View>();
  view->tilt = tilt;
  view->negligible = negligible;
  double count = 0.0;
  for (const Term& one : terms_) count += static_cast<double>(one.count);
  // Error that the atoms may add, as a fraction of each term's tilted variance. It grows with the
  // number of terms.
  const double tolerance =
      fine * std::fmin(options_.coarseness * static_cast<double>(terms_.size()), 100.0);
  const double share = count <= 1000.0 ? 0.05 * options_.coarseness : 1.0;
  const auto refined = [&](DiscretePld pld) {
    pld.refine(tilt, tolerance, negligible, share);
    return pld;
  };
  std::vector<DiscretePld> kept;  // kept if there are few losses; otherwise made one at a time
  if (terms_.size() <= few_terms)
    for (const Term& one : terms_) kept.push_back(refined(one.above));
  std::vector<TiltedAtoms> atoms;
  atoms.reserve(terms_.size());
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const LoggedAtoms own = kept.empty() ? terms_[i].above.logged_upper() : kept[i].logged_upper();
    atoms.push_back({own, kept.empty() ? moments(own, tilt) : kept[i].refined_moments()});
  }
  Cumulants cumulants;
  for (std::size_t i = 0; i < terms_.size(); ++i)
    cumulants.add(atoms[i].atoms, atoms[i].at, terms_[i].count);
  const Reach reach = cumulants.reach(tilt, wide ? kLogLittleOutside : kLogOutside);
  view->mean = reach.mean;
  view->deviation = reach.deviation;
  const double interval = choose_interval(atoms, tilt, reach.below + reach.above);
  view->interval = interval;

  double loss_error = 0.0;
  std::vector<Repeated> above, below;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& one = terms_[i];
    const DiscretePld pld = kept.empty() ? refined(one.above) : std::move(kept[i]);
    above.push_back({lattice_above(pld, interval), one.count});
    if (both)
      below.push_back(
          {lattice_below(one.same ? pld : refined(one.below), interval, negligible), one.count});
    loss_error = std::fmax(loss_error, pld.loss_error());
  }
  loss_error += lattice_rounding * interval;
  const double span = reach.below + reach.above;
  if (!(span < interval * static_cast<double>(options_.longest) * 16.0))
    throw std::domain_error("the privacy losses are too far apart for a grid of any size");
  view->length = length_for(span, interval);
  const std::shared_ptr<const Fft> fft = fft_of(view->length);
  const auto compose = [&](const std::vector<Repeated>& releases, bool from_above) {
    double offset = 0.0;
    for (const Repeated& release : releases)
      offset += static_cast<double>(release.count) * release.lattice.offset;
    Window window{.interval = interval, .length = fft->length()};
    const double spare = static_cast<double>(window.length) * interval - span;
    const double mean = lattice_mean(releases, tilt, interval);
    const double low = mean - reach.below - 0.5 * std::fmax(spare, 0.0);
    window.first = static_cast<std::int64_t>(std::floor(low / interval));
    bound_outside(releases, tilt, reach, window);
    const double top = low + offset + interval * static_cast<double>(window.length);
    view->top = std::fmax(view->top, top);
    return std::make_unique<LatticeSum>(releases, tilt, window, *fft, loss_error, from_above);
  };
  view->above = compose(above, true);
  if (both) view->below = compose(below, false);
  return view;
}

/// Removes the oldest views until at most max_views are left, with at most 2^18 lattice points
/// together (a single view of this size takes 30 MB).
void ComposedLoss::forget_views(std::size_t max_views) {
  const auto too_much = [&] {
    std::size_t points = 0;
    for (const std::unique_ptr<View>& known : views_) points += known->length;
    return views_.size() > max_views || points > 2 * usual;
  };
  while (!views_.empty() && too_much()) views_.erase(views_.begin());
}

const ComposedLoss::View& ComposedLoss::view(double tilt, double negligible) {
  for (const std::unique_ptr<View>& known : views_)
    if (known->negligible <= 10.0 * negligible && known->negligible >= 1e-10 * negligible &&
        ((std::fabs(tilt - known->tilt) * known->deviation <= 0.5 &&
          std::fabs(tilt - known->tilt) <= 0.3 * tilt) ||
         std::fabs(tilt - known->tilt) <= 0.02 * tilt))
      return *known;
  forget_views(7);
  views_.push_back(make_view(tilt, negligible, options_.lower));
  return *views_.back();
}

/// Returns a PrivacyBound with this epsilon and delta; its lower bound is not set yet. interval:
/// spacing of the grid of losses.
static PrivacyBound known(double epsilon, double delta, double interval) {
  return {
      .epsilon = epsilon, .delta = delta, .interval = interval, .accountant = AccountantKind::pld};
}

/// Finds by bisection where the delta that `bound` gives falls to `delta`: returns two epsilons in
/// [low, high], with a larger delta at the first and at most `delta` at the second. They are at
/// most 1e-14 apart, relative to the larger one, or as close as 60 halvings get. Requires that low
/// and high are such epsilons.
static std::pair<double, double> bisect(const LatticeSum& bound, double delta, double low,
                                        double high) {
  for (int i = 0; i < 60 && high - low > 1e-14 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (bound.delta(middle) <= delta ? high : low) = middle;
  }
  return {low, high};
}

/// Returns a lower bound on epsilon at delta. at: the tilted distribution to use. Its lower bounds
/// are good only near the mean of the tilted loss, which is near `epsilon`, an upper bound; so the
/// search starts there and goes down.
double ComposedLoss::lower_epsilon(const View& at, double epsilon, double delta) {
  if (at.below == nullptr) return 0.0;
  const double from = std::fmin(epsilon, std::fmax(at.top, 0.0));
  for (double width = 1e-6 * from + 1e-12; epsilon > 0.0; width *= 2.0) {
    const double low = std::fmax(from - width, 0.0);
    if (at.below->delta(low) > delta)
      return bisect(*at.below, delta, low, std::fmin(from, low + width)).first;
    if (low == 0.0) break;
  }
  return 0.0;
}

PrivacyBound ComposedLoss::epsilon(double delta) {
  if (terms_.empty()) return known(0.0, delta, options_.interval);
  const View& at = view(tilt_for_delta(delta), negligible_for(delta));
  PrivacyBound found = known(infinity, delta, at.interval);
  if (at.above->delta(0.0) <= delta)
    found.epsilon = 0.0;
  else if (at.top > 0.0 && at.above->delta(at.top) <= delta)
    found.epsilon = bisect(*at.above, delta, 0.0, at.top).second;
  found.epsilon_lower = lower_epsilon(at, found.epsilon, delta);
  // If the lower bound is loose, tries a wider range of losses. The loss may have two regimes, such
  // as the bulk and a rare large loss of a long allocated epoch. The losses near epsilon may then
  // have less tilted probability than the losses outside of the window, whose probability is
  // subtracted from a lower bound.
  if (std::isfinite(found.epsilon) && options_.lower && options_.coarseness <= 1.0 &&
      found.epsilon_lower < (1.0 - kLooseGap) * found.epsilon)
    found.epsilon_lower = std::fmax(
        found.epsilon_lower,
        lower_epsilon(*make_view(at.tilt, at.negligible, true, true), found.epsilon, delta));
  forget_views(8);
  return found;
}

PrivacyBound ComposedLoss::delta(double epsilon) {
  if (terms_.empty()) return known(epsilon, 0.0, options_.interval);
  double about = 0.0;
  const double tilt = tilt_for_epsilon(epsilon, about);
  const View* at = &view(tilt, negligible_for(about));
  double upper = 1.0, lower = 0.0;
  const auto bound_both = [&] {
    upper = std::fmin(upper, at->above->delta(epsilon));
    if (at->below != nullptr) lower = std::fmax(lower, at->below->delta(epsilon));
  };
  bound_both();
  if (!(upper <
        1.0)) {  // this window missed an event so unlikely; any other window gives a bound, too
    at = &view(tilt_for_delta(1e-20), negligible_for(1e-20));
    bound_both();
  }
  // If the tail of one release falls slowly, the saddle point's delta is far too large, and so is
  // the probability that was considered negligible.
  for (int round = 0; round < 2 && upper < 1.0; ++round) {
    if (at->negligible <= 1e3 * negligible_for(upper)) break;
    at = &view(at->tilt, negligible_for(1e-2 * upper));
    bound_both();
  }
  PrivacyBound found = known(epsilon, upper, at->interval);
  found.delta_lower = lower;
  forget_views(8);
  return found;
}

std::vector<double> ComposedLoss::curve(std::span<const double> epsilons, double least) {
  std::vector<double> deltas(epsilons.size(), terms_.empty() ? 0.0 : 1.0);
  if (terms_.empty()) return deltas;
  // Ratio of the deltas for which consecutive views are made. The means of their tilted losses are
  // then a few standard deviations of the loss apart.
  constexpr double kRatio = 1000.0;
  if (curve_views_.empty()) {
    curve_views_.push_back(make_view(tilt_for_delta(0.02), negligible_for(1e-6), false));
    least_ = 0.02;
  }
  while (least_ > least * 3.0) {
    least_ = std::fmax(least_ / kRatio, least);
    curve_views_.push_back(make_view(tilt_for_delta(least_), negligible_for(1e-3 * least_), false));
  }
  for (const std::unique_ptr<View>& at : curve_views_)
    for (std::size_t i = 0; i < epsilons.size(); ++i)
      deltas[i] = std::fmin(deltas[i], std::fmax(at->above->delta(epsilons[i]), 0.0));
  return deltas;
}

}  // namespace cudp::privacy::pld
