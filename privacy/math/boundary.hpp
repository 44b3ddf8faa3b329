#pragma once
#include <algorithm>
#include <cmath>

namespace cudp::privacy {

/// Finds where f changes its sign, from the safe side: returns a point x with f(x) <= 0, within
/// `tolerance` of a point with f > 0. Requires f > 0 at `bad` and f <= 0 at `good`; f need not be
/// smooth. Takes about ten calls of f for nine digits. Source: Chandrupatla 1997, "A new hybrid
/// quadratic/bisection algorithm for finding the zero of a nonlinear function without using
/// derivatives". F: type of the function f.
template <class F>
double safe_boundary(const F& f, double bad, double good, double tolerance) {
  double a = good, fa = f(good), b = bad, fb = f(bad);  // the bracket; a is the newest point
  double t = 0.5;  // next point, as a fraction of the way from a to b
  while (std::fabs(b - a) > tolerance) {
    const double x = a + t * (b - a), fx = f(x);
    double c = b, fc = fb;  // the point that leaves the bracket
    if ((fx > 0.0) == (fa > 0.0)) {
      c = a;
      fc = fa;
    } else {
      b = a;
      fb = fa;
    }
    a = x;
    fa = fx;
    // Inverse quadratic interpolation, if the three points allow it.
    const double xi = (a - b) / (c - b), phi = (fa - fb) / (fc - fb);
    t = 0.5;
    if (phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi)
      t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb);
    const double min_share = std::fmin(0.5, 0.5 * tolerance / std::fabs(b - a));
    t = std::clamp(t, min_share, 1.0 - min_share);
  }
  return fa <= 0.0 ? a : b;
}

}  // namespace cudp::privacy
