#include "tests/audit/audit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <thread>

#include "tests/support/distributions.hpp"

namespace cudp::audit {
namespace {

/// P(hit | one) <= e^epsilon P(hit | other) + delta, solved for epsilon.
double epsilon_shown(double hits_one, double hits_other, double runs, double delta, double error) {
  const double one = at_least(hits_one, runs, error) - delta;
  return one > 0.0 ? std::log(one / at_most(hits_other, runs, error)) : 0.0;
}

/// Of sorted numbers, how many are at or above a threshold.
double above(const std::vector<double>& sorted, double threshold) {
  return static_cast<double>(sorted.end() - std::ranges::lower_bound(sorted, threshold));
}

/// What the trial shows in `runs` runs from number `first` on, sorted.
std::vector<double> outcomes(const Trial& trial, bool with, int runs, std::uint64_t first) {
  std::vector<double> x(static_cast<std::size_t>(runs));
  const auto part = [&](std::size_t begin) {
    for (std::size_t i = begin; i < x.size(); i += 2) x[i] = trial(with, first + i);
  };
  {
    const std::jthread other(part, 1);
    part(0);
  }
  std::ranges::sort(x);
  return x;
}

}  // namespace

double at_least(double hits, double runs, double error) {
  if (hits == 0.0) return 0.0;
  return law::beta_quantile(hits, runs - hits + 1.0, error);
}
double at_most(double hits, double runs, double error) {
  if (hits == runs) return 1.0;
  return law::beta_quantile(hits + 1.0, runs - hits, 1.0 - error);
}

double shown(const std::vector<double>& with, const std::vector<double>& without, double threshold,
             bool there, double delta, double error) {
  const auto runs = static_cast<double>(with.size());
  const double a = above(with, threshold);
  const double b = above(without, threshold);
  return there ? epsilon_shown(a, b, runs, delta, error)
               : epsilon_shown(runs - b, runs - a, runs, delta, error);
}

double epsilon_lower(const Trial& trial, double delta, int runs) {
  const double error = kError / 4.0;  // two directions, two probabilities
  const int part = runs / 4;
  const auto second = static_cast<std::uint64_t>(part);
  const std::vector<double> with = outcomes(trial, true, part, 0);
  const std::vector<double> without = outcomes(trial, false, part, 0);
  const std::vector<double> with_then = outcomes(trial, true, part, second);
  const std::vector<double> without_then = outcomes(trial, false, part, second);
  double bound = 0.0;
  for (const bool there : {true, false}) {
    double best = 0.0;
    double threshold = 0.0;
    for (const std::vector<double>* x : {&with, &without})
      for (std::size_t i = 0; i < x->size(); i += std::max<std::size_t>(1, x->size() / 250)) {
        const double e = shown(with, without, (*x)[i], there, delta, error);
        if (e <= best) continue;
        best = e;
        threshold = (*x)[i];
      }
    if (best > 0.0)
      bound = std::max(bound, shown(with_then, without_then, threshold, there, delta, error));
  }
  return bound;
}

double log_odds(double x, double q, double sigma) {
  return std::log1p(q * std::expm1((x - 0.5) / (sigma * sigma)));
}

}  // namespace cudp::audit
