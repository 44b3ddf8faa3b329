#include "privacy/selection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "privacy/accountant.hpp"
#include "privacy/math/boundary.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Factor by which results are rounded up. It is far larger than the rounding errors of computing
/// them.
constexpr double kOutward = 1.0 + 1e-9;
/// Largest epsilon in tables of deltas, and about the largest epsilon at which a bound is searched.
constexpr double kMaxEpsilon = 500.0;
/// Smallest delta of a candidate at which bounds are tight. Smaller deltas are bounded, too, but
/// not tightly.
constexpr double kLeast = 1e-9;

// ---- Profile of Q at multiples of a step.

/// Table of upper bounds on delta as a function of epsilon, at epsilon = 0, step, 2 step, ..., for
/// Q, the mechanism that trains and scores one candidate. at() interpolates.
class ProfileTable {
 public:
  explicit ProfileTable(RepetitionBounds q) : q_(std::move(q)) {
    const auto larger = [](const ProfileAt& p) { return std::fmax(p.add, p.remove); };
    // The step is 1/256 of the smallest probed epsilon at which delta is within 1e-6 of its value
    // at the largest one.
    std::vector<double> probes;
    for (double e = 1e-4; e < kMaxEpsilon; e *= 1.25) probes.push_back(e);
    const std::vector<ProfileAt> found = q_.profile(probes);
    std::size_t i = 0;
    while (i + 1 < probes.size() && larger(found[i]) > 1e-6 + larger(found.back())) ++i;
    step_ = probes[i] / 256.0;
    extend(probes[i]);
  }

  /// Extends the table to this epsilon, but to at most 8192 entries. For epsilons beyond the table,
  /// at() returns its last value, which is an upper bound there too.
  void extend(double epsilon) {
    epsilon = std::fmin(epsilon, kMaxEpsilon);
    const auto size = static_cast<std::size_t>(std::fmin(std::ceil(epsilon / step_) + 2.0, 8192.0));
    if (size <= at_.size()) return;
    std::vector<double> epsilons;
    for (std::size_t k = at_.size(); k < size; ++k)
      epsilons.push_back(static_cast<double>(k) * step_);
    for (const ProfileAt& p : q_.profile(epsilons)) at_.push_back({above(p.add), above(p.remove)});
  }

  std::size_t size() const { return at_.size(); }
  double epsilon(std::size_t k) const { return static_cast<double>(k) * step_; }
  /// Returns entry k of the table: the delta if a unit of privacy is added, or if one is removed
  /// (`reversed`).
  double value(std::size_t k, bool reversed) const { return reversed ? at_[k].remove : at_[k].add; }

  /// Returns an upper bound on delta at any epsilon. Delta is convex in e^epsilon, so linear
  /// interpolation between two entries bounds it from above. For epsilon < 0: delta(epsilon) = 1 -
  /// e^epsilon (1 - delta_reversed(-epsilon)), where delta_reversed is that of the other direction.
  /// reversed: false for the delta if a unit of privacy is added, true for that if one is removed.
  double at(double epsilon, bool reversed) const {
    if (epsilon < 0.0)
      return std::fmin(1.0, 1.0 - std::exp(epsilon) * (1.0 - at(-epsilon, !reversed)) + 1e-15);
    const auto k = static_cast<std::size_t>(epsilon / step_);
    if (k + 1 >= at_.size()) return value(at_.size() - 1, reversed);
    const double share = std::expm1(epsilon - this->epsilon(k)) / std::expm1(step_);
    const double left = value(k, reversed), right = value(k + 1, reversed);
    return right + (left - right) * std::clamp(1.0 - share + 1e-12, 0.0, 1.0);
  }

 private:
  static double above(double delta) {
    if (!(delta >= 0.0)) throw std::invalid_argument("profile: expected numbers >= 0");
    return std::fmin(delta * kOutward, 1.0);
  }

  RepetitionBounds q_;
  double step_ = 0.0;
  std::vector<ProfileAt> at_;
};

// ---- Envelopes of lines.

/// A line; its value at w is a - b w.
struct Line {
  double a = 0.0, b = 0.0;
};

/// Returns the upper envelope of the lines a - b w for w >= 0: the lines that are the largest of
/// all at some w, by increasing w.
std::vector<Line> upper_envelope(std::vector<Line> lines) {
  std::sort(lines.begin(), lines.end(),
            [](const Line& x, const Line& y) { return x.b != y.b ? x.b > y.b : x.a > y.a; });
  const auto meet = [](const Line& x, const Line& y) { return (x.a - y.a) / (x.b - y.b); };
  std::vector<Line> kept;
  for (const Line& line : lines) {
    if (!kept.empty() && kept.back().b == line.b) continue;
    while (!kept.empty() && (line.a >= kept.back().a ||
                             (kept.size() > 1 &&
                              meet(kept.back(), line) <= meet(kept[kept.size() - 2], kept.back()))))
      kept.pop_back();
    kept.push_back(line);
  }
  return kept;
}

// ---- Bounds on the privacy of A, the whole selection, in one direction.

/// Bounds on the slope of f, the generating function f(x) = E[x^K] of the number K of trainings.
/// The points v[i] divide [0, 1] into intervals (cells), and each interval uses the bounds at its
/// ends. v is the probability that one training gets a better score than the released one.
struct Cells {
  std::vector<double> v;      ///< ends of the intervals, ascending from 0 to 1
  std::vector<double> above;  ///< upper bound on f'(1 - v[i])
  /// Lower bound on f'(p (1 - v[i])), with p the probability that a training does not fail
  /// (argument p_success of cells_of()).
  std::vector<double> below;
};

Cells cells_of(const Stopping& stopping, std::size_t largest, double p_success) {
  const StoppingLaw& law = stopping.law();
  const double first = 1e-6 * std::fmax(law.gamma, 1.0 / static_cast<double>(law.cap));
  const std::size_t count = std::clamp(std::size_t{1'000'000'000} / law.cap,
                                       std::min<std::size_t>(4096, largest), largest);
  std::vector<double> u;
  u.push_back(1.0);
  for (std::size_t i = 0; i <= count; ++i) {
    const double v =
        std::exp(std::log(first) * (1.0 - static_cast<double>(i) / static_cast<double>(count)));
    const double next = i == count ? 0.0 : 1.0 - v;
    if (next < u.back()) u.push_back(next);
  }
  Cells cells;
  for (const double x : u) cells.v.push_back(1.0 - x);
  cells.above = stopping.slopes_above(u);
  if (p_success < 1.0)
    for (double& x : u) x *= p_success;
  cells.below = stopping.slopes_below(u);
  return cells;
}

/// Bounds on the privacy of A, the whole selection, in one direction: from a data set D to the
/// neighbour D' with a unit of privacy added, or with one removed.
struct Direction {
  /// Coefficients of a bound on the selection's delta: delta_A(e) <= sum over j of weights[j] *
  /// delta_Q(e - shifts[j]), where delta_A(e) is the delta of the whole selection at epsilon e, and
  /// delta_Q that of one training with its score.
  std::vector<double> weights, shifts;
  /// Lines -log(b) + w log(a), one for each interval of Cells, where a is the slope of the
  /// generating function f on the data set D, and b its least slope on the neighbour D'. Only the
  /// lines that are the largest for some w >= 0 are kept. They bound the Renyi divergence.
  std::vector<Line> logs;
};

/// Returns, for each end v of `cells`, an upper bound on the probability that the result of one
/// training (Q) on the neighbour is in a set, if that probability on the data set is at most v.
/// profile: bounds on Q's delta. reversed: the neighbour lacks a unit of privacy instead of having
/// one more.
std::vector<double> largest_probabilities(const Cells& cells, const ProfileTable& profile,
                                          bool reversed) {
  std::vector<Line> lines;  // v' <= a - b v, negated for the upper envelope
  for (std::size_t k = 0; k < profile.size(); ++k) {
    const double e = profile.epsilon(k);
    lines.push_back({-profile.value(k, !reversed), std::exp(e)});
    const double share = std::exp(-e);
    lines.push_back({-(1.0 - share * (1.0 - profile.value(k, reversed))), share});
  }
  lines = upper_envelope(std::move(lines));
  std::vector<double> largest;
  std::size_t k = 0;
  for (const double v : cells.v) {
    const auto at = [&](std::size_t j) { return -lines[j].a + lines[j].b * v; };
    while (k + 1 < lines.size() && at(k + 1) <= at(k)) ++k;
    largest.push_back(std::clamp(at(k) * kOutward + 1e-16, v, 1.0));
  }
  return largest;
}

Direction direction_of(const Cells& cells, const ProfileTable& profile, bool reversed) {
  const std::vector<double> largest = largest_probabilities(cells, profile, reversed);
  Direction direction;
  std::vector<Line> lines, logs;
  std::size_t j = 0;
  for (std::size_t i = 0; i + 1 < cells.v.size(); ++i) {
    while (j + 1 < cells.v.size() && cells.v[j] < largest[i + 1]) ++j;
    const Line line{cells.above[i] * kOutward, cells.below[j] / kOutward};
    lines.push_back(line);
    logs.push_back({-std::log(line.b), -std::log(line.a)});
  }
  direction.logs = upper_envelope(std::move(logs));
  // The envelope equals a sum of functions max(knot - w, 0) with positive weights. A knot is a w at
  // which the envelope changes from one line to the next, or becomes 0.
  const std::vector<Line> envelope = upper_envelope(std::move(lines));
  for (std::size_t i = 0; i < envelope.size(); ++i) {
    const Line& line = envelope[i];
    const bool last = i + 1 == envelope.size();
    const double next = last ? 0.0 : envelope[i + 1].b;
    const double knot = last ? line.a / line.b : (line.a - envelope[i + 1].a) / (line.b - next);
    if (!(knot > 0.0)) continue;
    const double weight = (line.b - next) * knot;
    if (!last && knot >= line.a / line.b) {  // zero before the next line begins
      direction.weights.push_back(line.a);
      direction.shifts.push_back(std::log(line.a / line.b));
      break;
    }
    direction.weights.push_back(weight);
    direction.shifts.push_back(std::log(knot));
  }
  return direction;
}

double delta_of(const Direction& direction, const ProfileTable& profile, bool reversed,
                double epsilon) {
  double sum = 0.0;
  for (std::size_t j = 0; j < direction.weights.size(); ++j) {
    const double e = epsilon - direction.shifts[j];
    sum += direction.weights[j] * profile.at(e - 1e-12 * (1.0 + std::fabs(e)), reversed);
  }
  return std::fmin(1.0, sum * kOutward);
}

// ---- Candidates.

/// The privacy that one candidate of a selection spends, with the accountants that compute its
/// bounds.
class Candidate {
 public:
  Candidate(const RunSpending& spending, std::uint64_t group) : failure_(spending.failure) {
    if (const auto* planned = std::get_if<PlannedRun>(&spending.run))
      set(planned->releases, group);
    else if (const auto* stated = std::get_if<StatedRun>(&spending.run))
      set({{ApproximateDp{stated->epsilon, stated->delta}, 1}}, 1);
    else if (const auto* renyi = std::get_if<RenyiFilteredRun>(&spending.run)) {
      check_order(renyi->order);
      check_rdp(renyi->divergence, renyi->order);
      order_ = renyi->order;
      divergence_ = renyi->divergence;
    } else if (const auto* zcdp = std::get_if<ZcdpFilteredRun>(&spending.run)) {
      if (!(zcdp->rho >= 0.0 && std::isfinite(zcdp->rho)))
        throw std::invalid_argument("rho: expected a number >= 0, found " + number(zcdp->rho));
      rho_ = zcdp->rho;
    } else {
      throw std::invalid_argument(
          "candidates: expected trainings that were planned, filtered or stated");
    }
    if (!(failure_ >= 0.0 && failure_ < 1.0))
      throw std::invalid_argument("failure: expected a number in [0, 1), found " +
                                  number(failure_));
  }

  double divergence(double order) const {
    if (curve_) return std::fmax(0.0, curve_->grouped(order, 4096));
    if (order_ > 0.0) return order <= order_ ? divergence_ : infinity;
    return rho_ * order * kOutward;
  }
  /// Returns the probability of the event on which the bound divergence() does not hold.
  double failure() const { return failure_ + (curve_ ? curve_->failure() : 0.0); }
  double order() const { return order_; }

  std::vector<ProfileAt> profile(std::span<const double> epsilons) const {
    std::vector<ProfileAt> found;
    if (accountant_) {
      for (const PrivacyBound& bound : accountant_->profile(epsilons, kLeast)) {
        found.push_back({bound.delta_add.value_or(bound.delta) + failure_,
                         bound.delta_remove.value_or(bound.delta) + failure_});
      }
      return found;
    }
    std::vector<double> orders(default_orders().begin(), default_orders().end());
    if (order_ > 0.0) orders = {order_};
    for (const double epsilon : epsilons) {
      double least = 0.0;
      for (const double order : orders)
        least = std::fmin(least, log_delta_at(order, divergence(order), epsilon));
      const double delta = delta_from_log(least) + failure_;
      found.push_back({delta, delta});
    }
    return found;
  }

 private:
  void set(const std::vector<Release>& releases, std::uint64_t group) {
    accountant_ = std::make_shared<Accountant>(Composition{.releases = releases, .group = group});
    curve_ = std::make_shared<RdpCurve>(releases, Neighbours{.group = group});
  }

  std::shared_ptr<Accountant> accountant_;
  std::shared_ptr<RdpCurve> curve_;
  double order_ = 0.0, divergence_ = 0.0;  ///< for a RenyiFilteredRun, otherwise 0
  double rho_ = 0.0;
  double failure_ = 0.0;
};

bool same(const RunSpending& x, const RunSpending& y) {
  const auto* a = std::get_if<PlannedRun>(&x.run);
  const auto* b = std::get_if<PlannedRun>(&y.run);
  return a != nullptr && b != nullptr && a->releases == b->releases && x.failure == y.failure;
}

}  // namespace

RepetitionBounds bounds_of(std::span<const RunSpending> candidates, std::uint64_t group) {
  check_group(group);
  if (candidates.empty())
    throw std::invalid_argument("candidates: expected at least one, found none");
  auto list = std::make_shared<std::vector<Candidate>>();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (std::none_of(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const RunSpending& x) { return same(x, candidates[i]); }))
      list->emplace_back(candidates[i], group);
  RepetitionBounds q;
  for (const Candidate& candidate : *list) {
    q.failure = std::fmax(q.failure, candidate.failure());
    if (candidate.order() > 0.0) q.orders.push_back(candidate.order());
  }
  q.profile = [list](std::span<const double> epsilons) {
    std::vector<ProfileAt> largest(epsilons.size());
    for (const Candidate& candidate : *list) {
      const std::vector<ProfileAt> found = candidate.profile(epsilons);
      for (std::size_t i = 0; i < found.size(); ++i) {
        largest[i].add = std::fmax(largest[i].add, found[i].add);
        largest[i].remove = std::fmax(largest[i].remove, found[i].remove);
      }
    }
    return largest;
  };
  q.divergence = [list](double order) {
    double largest = 0.0;
    for (const Candidate& candidate : *list)
      largest = std::fmax(largest, candidate.divergence(order));
    return largest;
  };
  return q;
}

/// Implementation of Selection: the bounds that its constructor prepares.
struct Selection::State {
  Stopping stopping;
  RepetitionBounds q;
  ProfileTable profile;
  std::array<Direction, 2> directions;  ///< for adding and for removing a unit of privacy
  /// Bounds under the condition that the Renyi divergence holds in every training; used for
  /// Selection::divergence() if q.failure > 0.
  std::array<Direction, 2> without_failure;
  std::size_t cells;
  /// Cache of the Renyi divergences of one training (Q), by order.
  std::map<double, double> divergences;
  double failure = 0.0;

  State(const StoppingLaw& law, RepetitionBounds bounds, std::size_t count)
      : stopping(law), q(std::move(bounds)), profile(q), cells(count) {
    const Cells all = cells_of(stopping, cells, 1.0);
    for (const bool reversed : {false, true})
      directions[reversed ? 1 : 0] = direction_of(all, profile, reversed);
    if (q.divergence && q.failure > 0.0) prepare_failure();
  }

  /// Computes `without_failure` and `failure`, if the Renyi divergence of Q, one training with its
  /// score, holds except with probability p. Such a Q is a mixture (1 - p) Q0 + p Q1, in which Q0
  /// has the divergence. Let f(x) = E[x^K], with K the number of trainings. Then all trainings are
  /// runs of Q0 with probability f(1 - p). Under this condition the selection is among runs of Q0,
  /// and their number has the generating function f((1 - p) x) / f(1 - p). failure: bound on the
  /// probability that some training is a run of Q1.
  void prepare_failure() {
    const double p_success = 1.0 - q.failure;
    failure = std::fmin(1.0, stopping.mean() * q.failure * kOutward);
    const double normal = stopping.generated_below(p_success);
    RepetitionBounds of_q0{.profile = [this](std::span<const double> epsilons) {
      std::vector<ProfileAt> found;
      std::vector<double> orders = all_orders(), divergences_of_q0;
      for (const double order : orders) divergences_of_q0.push_back(of_q(order));
      for (const double epsilon : epsilons) {
        double least = 0.0;
        for (std::size_t i = 0; i < orders.size(); ++i)
          least = std::fmin(least, log_delta_at(orders[i], divergences_of_q0[i], epsilon));
        found.push_back({delta_from_log(least), delta_from_log(least)});
      }
      return found;
    }};
    const ProfileTable table(std::move(of_q0));
    Cells all = cells_of(stopping, cells, p_success);
    for (double& slope : all.above) slope *= p_success / normal * kOutward;
    for (double& slope : all.below) slope *= p_success / kOutward;
    for (const bool reversed : {false, true})
      without_failure[reversed ? 1 : 0] = direction_of(all, table, reversed);
  }

  std::vector<double> all_orders() const {
    std::vector<double> orders(default_orders().begin(), default_orders().end());
    orders.insert(orders.end(), q.orders.begin(), q.orders.end());
    return orders;
  }

  ProfileAt delta(double epsilon) {
    profile.extend(epsilon);
    return {.add = delta_of(directions[0], profile, false, epsilon),
            .remove = delta_of(directions[1], profile, true, epsilon)};
  }
  double larger_delta(double epsilon) {
    const ProfileAt found = delta(epsilon);
    return std::fmax(found.add, found.remove);
  }

  /// Returns the Renyi divergence of this order [nats] of Q, one training with its score. It is
  /// computed once per order, because it takes long for some mechanisms.
  double of_q(double order) {
    const auto [found, is_new] = divergences.try_emplace(order, 0.0);
    if (is_new) found->second = q.divergence(order);
    return found->second;
  }

  double divergence(double order) {
    check_order(order);
    if (!q.divergence) return infinity;
    const double of_q = this->of_q(order);
    if (!std::isfinite(of_q)) return infinity;
    const double share = order / (order - 1.0);
    double largest = 0.0;
    for (const Direction& direction : q.failure > 0.0 ? without_failure : directions)
      for (const Line& line : direction.logs) largest = std::fmax(largest, line.a - line.b * share);
    return (of_q + largest) * kOutward + 1e-12;
  }
};

Selection::Selection(const StoppingLaw& law, RepetitionBounds q, std::size_t cells)
    : state_(std::make_unique<State>(law, std::move(q), cells)) {}
Selection::Selection(const TunedRun& run, std::uint64_t group)
    : Selection(run.law, bounds_of(run.candidates, group)) {}
Selection::~Selection() = default;
Selection::Selection(Selection&&) noexcept = default;
Selection& Selection::operator=(Selection&&) noexcept = default;

const Stopping& Selection::stopping() const { return state_->stopping; }
double Selection::divergence(double order) { return state_->divergence(order); }
double Selection::failure() const { return state_->failure; }

ProfileAt Selection::profile(double epsilon) {
  check_epsilon(epsilon);
  return state_->delta(epsilon);
}

SelectionEpsilon Selection::epsilon(double delta) {
  check_delta(delta);
  SelectionEpsilon best{.epsilon = infinity, .delta = delta};
  // Epsilon by the profile: increases `end` until delta at this epsilon is low enough, then
  // searches for the smallest such epsilon between 0 and `end`.
  double end = 0.01;
  const auto excess = [&](double e) {
    return std::log(std::fmax(state_->larger_delta(e), 1e-320)) - std::log(delta);
  };
  while (end < kMaxEpsilon && excess(end) > 0.0) end *= 1.5;
  if (excess(end) <= 0.0)
    best.epsilon = excess(0.0) <= 0.0 ? 0.0 : safe_boundary(excess, 0.0, end, 1e-7 * end);
  if (state_->q.divergence && delta > state_->failure) {
    const std::vector<double> orders = state_->all_orders();
    const PrivacyBound renyi = lowest_epsilon(
        orders, [&](std::size_t i) { return state_->divergence(orders[i]); },
        (delta - state_->failure) / kOutward);
    if (renyi.epsilon < best.epsilon) {
      best.epsilon = std::fmax(renyi.epsilon, 0.0);
      best.by = SelectionEpsilon::By::renyi;
      best.order = renyi.order;
    }
  }
  if (!std::isfinite(best.epsilon))
    throw std::domain_error("no finite epsilon of the selection can be shown at delta " +
                            number(delta));
  return best;
}

SelectionBudget calibrate_selection(const StoppingLaw& law, double epsilon, double delta,
                                    const PlanCandidates& plan, std::uint64_t group) {
  check_delta(delta);
  if (!(epsilon > 0.0 && epsilon <= 100.0))
    throw std::invalid_argument("epsilon: expected a number in (0, 100], found " + number(epsilon));
  SelectionBudget budget;
  // Delta of each candidate. If a candidate is a StatedRun, the selection's delta includes E[K]
  // times the candidate's. The factor 0.9 leaves a part of `delta` for the rest.
  budget.delta = 0.9 * delta / Stopping(law).mean();
  SelectionBudget best;
  // log(epsilon of A / epsilon) as a function of log(epsilon of a candidate): nearly linear.
  const auto excess = [&](double log_epsilon) {
    budget.epsilon = std::exp(log_epsilon);
    const std::vector<RunSpending> candidates = plan(budget.epsilon, budget.delta);
    if (candidates.empty()) return -infinity;  // too little for one of them
    budget.whole = Selection(law, bounds_of(candidates, group)).epsilon(delta);
    const double found = std::log(std::fmax(budget.whole.epsilon, 1e-9) / epsilon);
    if (found <= 0.0 && budget.epsilon > best.epsilon) best = budget;
    return found;
  };
  double low = std::log(epsilon) - 8.0, high = std::log(epsilon);
  double x = high - std::log(2.0), slope = 1.0;
  double last_x = 0.0, last = infinity;
  for (int round = 0; round < 40; ++round) {
    const double found = excess(x);
    if (found <= 0.0 && found > -1e-3) return best;
    (found <= 0.0 ? low : high) = x;
    if (std::isfinite(last) && x != last_x) {
      const double measured = (found - last) / (x - last_x);
      if (measured > 0.2 && measured < 5.0) slope = measured;
    }
    last_x = x;
    last = found;
    double next = x - (found + 4e-4) / slope;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    x = next;
    if (high - low < 1e-6) break;
  }
  if (best.epsilon == 0.0)
    throw std::domain_error("no budget of the candidates gives epsilon " + number(epsilon) +
                            " at delta " + number(delta) +
                            " for the whole selection: give a larger epsilon or a smaller E[K]");
  return best;
}

}  // namespace cudp::privacy
