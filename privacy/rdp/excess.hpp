#pragma once
#include <cmath>
#include <optional>

#include "privacy/math/log_sum.hpp"

// A Renyi divergence is log(A) / (order - 1) for a moment A = E[x^order] of a likelihood ratio x
// with mean 1. If a mechanism leaks little, A is, say, 1 + 1e-20, which rounds to 1, and the
// divergence to 0. The functions here compute the excess A - 1, as a sum of positive terms, in log
// space. E[x] = 1 turns it into E[x^order - 1 - order (x - 1)], and by Bernoulli's inequality this
// integrand is never negative. So nothing cancels.

namespace cudp::privacy {

/// Returns log(exp(x) - 1) for x > 0, without overflow.
double log_expm1(double x);

/// Returns log A, the logarithm of a moment A, given log_excess = log(A - 1), rounded up.
/// magnitude: bound on the size of the exponents whose exponentials were added up to A - 1; it
/// determines the rounding error, because an exponent of size m has an error of m roundings, and
/// its exponential the same relative error. The error of log A is at most the relative error of A -
/// 1 times min(1, log A).
double log_moment(double log_excess, double magnitude);

/// Returns log(e^(c l) - 1 + c (e^(-l) - 1)), without cancellation, for c > 0 and any l. With l =
/// log x and c = order - 1 it is log_bernoulli_gap() - l.
double log_gap(double c, double l);

/// Returns log(x^order - 1 - order (x - 1)), without cancellation, given l = log x; order > 1.
inline double log_bernoulli_gap(double order, double l) { return l + log_gap(order - 1.0, l); }

/// Returns the log of the integral of e^f over [first, last], by the trapezoidal rule with step h
/// or less. f must be analytic in a strip around the real line and negligible beyond first and
/// last.
///
/// The rule has an error of e^(-2 pi a / h), if a is half of the strip's width, times the growth of
/// e^f in the strip. The rule on every second node has an error of e^(-pi a / h) times the same
/// growth. So if the sums over even and over odd nodes agree to t, the whole sum is accurate to
/// t^2. h is halved until t is at most 5e-7. Returns nullopt if `max_nodes` nodes do not suffice.
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
