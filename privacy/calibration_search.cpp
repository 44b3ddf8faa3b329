#include "privacy/calibration_search.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "privacy/math/boundary.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// The search of search_fitting_value().
class Search {
 public:
  Search(const Unknown& unknown, const Tolerance& tolerance, const Excess& excess,
         const std::string& budget)
      : unknown_(unknown), tolerance_(tolerance), excess_(excess), budget_(budget) {}

  double solve() {
    const double safe = log_of(unknown_.safe_end), greedy = log_of(unknown_.greedy_end);
    const double toward_greedy = greedy > safe ? 1.0 : -1.0;
    const auto clamp = [&](double v) {
      return std::clamp(v, std::fmin(safe, greedy), std::fmax(safe, greedy));
    };

    // A coarse bracket around the guess, then a coarse root.
    double v = clamp(log_of(unknown_.guess)), g = excess_.coarse(v), good = v, bad = v;
    for (double width = 0.1;; width *= 2.0) {
      if (g <= 0.0) {
        good = v;
        if (v == greedy) break;
        v = clamp(v + toward_greedy * width);
        g = excess_.coarse(v);
        if (g <= 0.0) continue;
        bad = v;
        break;
      }
      bad = v;
      if (v == safe) break;
      v = clamp(v - toward_greedy * width);
      g = excess_.coarse(v);
      if (g > 0.0) continue;
      good = v;
      break;
    }
    if (good != bad)
      v = safe_boundary([this](double at) { return excess_.coarse(at); }, bad, good, 1e-3);
    const double derivative_step = 0.01 * -toward_greedy;
    double derivative =
        (excess_.coarse(clamp(v + derivative_step)) - excess_.coarse(v)) / derivative_step;
    if (!(std::fabs(derivative) > 0.01 && std::fabs(derivative) < 1e3)) derivative = toward_greedy;

    // Newton's steps on the usual grid, kept between a value known to fit and one known not to fit.
    good = safe - toward_greedy;  // nothing known
    bad = greedy + toward_greedy;
    double last_v = 0.0, last_g = infinity, least_move = 1.0;
    bool good_is_confirmed = false;
    for (int round = 0; round < 60; ++round) {
      v = snap(clamp(v));
      g = excess_.fine(v);
      // Computing the excess in the other direction (excess_.other) takes as long as excess_.fine.
      // Skips it for the first value, unless that value may be the result.
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
                                  " reaches " + budget_);
        bad = v;
      }
      if (between(good, bad)) {
        if (good_is_confirmed) break;
        v = good;  // the other direction was not computed there
        g = confirmed(v, -infinity);
        good_is_confirmed = g <= 0.0;
        if (good_is_confirmed) break;
        // The value does not fit in the other direction, so the search restarts from it. It drops
        // the slope, because the last two excesses are of different directions.
        bad = v;
        good = safe - toward_greedy;
        derivative = toward_greedy;
        last_g = infinity;
      }
      if (std::isfinite(last_g) && std::isfinite(g) && v != last_v &&
          (g - last_g) / (v - last_v) * derivative > 0.0)
        derivative = (g - last_g) / (v - last_v);
      last_v = v;
      last_g = g;
      double next = std::isfinite(g) ? v - (g + tolerance_.aim) / derivative : v - toward_greedy;
      // Bisects if Newton's step is not strictly between `good` and `bad`, because such a value
      // gives no new information; also from the eighth step on.
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
    const bool is_known = (good - safe) * toward_greedy >= 0.0;
    if (!is_known || (!good_is_confirmed && confirmed(good, excess_.fine(good)) > 0.0))
      throw std::domain_error(std::string(unknown_.what) + ": the search does not converge");
    return value_of(good);
  }

 private:
  static double log_of(double x) { return std::log(x); }
  double value_of(double v) const { return unknown_.value_at(v); }
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

  /// Returns the excess by the usual accountant in both directions, or `g` if that is positive. g:
  /// excess_.fine(v).
  double confirmed(double v, double g) const {
    return g > 0.0 || !excess_.other ? g : std::fmax(g, excess_.other(v));
  }

  const Unknown& unknown_;
  const Tolerance& tolerance_;
  const Excess& excess_;
  const std::string& budget_;
};

}  // namespace

double Unknown::value_at(double v) const {
  const double x = std::exp(v);
  return whole ? std::round(x) : x;
}

double search_fitting_value(const Unknown& unknown, const Tolerance& tolerance,
                            const Excess& excess, const std::string& budget) {
  return Search(unknown, tolerance, excess, budget).solve();
}

}  // namespace cudp::privacy
