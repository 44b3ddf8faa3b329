#pragma once
#include <cmath>
#include <optional>

#include "privacy/math/log_sum.hpp"

// A Renyi divergence is log(A) / (order - 1) for a moment A = E[x^order] of a likelihood ratio x of
// mean 1. A is 1 + 1e-20 where a mechanism leaks little, so that 1 + it would round to 1 and the
// divergence to 0. What is here computes the excess A - 1, as a sum of positive terms, in log
// space: E[x] = 1 turns it into E[x^order - 1 - order (x - 1)], and Bernoulli's inequality says
// that this integrand is nowhere negative. Nothing cancels.

namespace cudp::privacy {

/// log(exp(x) - 1) for x > 0.
double log_expm1(double x);

/// log A from log(A - 1), rounded up. `magnitude` is the size of the exponents that made up
/// log(A - 1): an exponent of size m is known to m roundings, and so is its exponential,
/// relatively. d log A = dA / A is at most the relative error of A - 1 times min(1, log A).
double log_moment(double log_excess, double magnitude);

/// log of e^(c l) - 1 + c (e^(-l) - 1), for c > 0 and any l.
double log_gap(double c, double l);

/// log of x^order - 1 - order (x - 1), given l = log x; order > 1.
inline double log_bernoulli_gap(double order, double l) { return l + log_gap(order - 1.0, l); }

/// log of the integral of e^f over [first, last], by the trapezoidal rule with step h or less; f
/// must be analytic in a strip around the real line and fall off by first and last.
///
/// The rule is wrong by e^(-2 pi a / h) in a strip of half-width a, times what e^f grows by in
/// the strip. The rule on every second node is wrong by e^(-pi a / h), times the same. So where the
/// two halves of the nodes agree to t, the whole is good to t^2; t = 5e-7 is asked for, h is halved
/// until it is reached, and there is no value where `most_nodes` do not reach it.
template <class F>
std::optional<double> log_integral(const F& f, double first, double last, double h,
                                   double max_nodes = 1e5) {
  double intervals = std::ceil((last - first) / h);
  if (!(intervals <= max_nodes)) return std::nullopt;
  h = (last - first) / intervals;
  LogSum known;  // every node so far
  for (int i = 0; i <= static_cast<int>(intervals); ++i) known.add(f(first + i * h));
  for (;;) {
    LogSum between;
    for (int i = 0; i < static_cast<int>(intervals); ++i) between.add(f(first + (i + 0.5) * h));
    const double even = known.value(), odd = between.value();
    known.add(odd);
    h *= 0.5;
    intervals *= 2.0;
    if (std::fabs(even - odd) <= 5e-7) return known.value() + std::log(h);
    if (!(2.0 * intervals <= max_nodes)) return std::nullopt;
  }
}

}  // namespace cudp::privacy
