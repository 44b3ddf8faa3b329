#include "bench/reproduce/non_private.hpp"

#include <cmath>
#include <cstddef>
#include <deque>

#include "runtime/data/examples.hpp"

namespace cudp {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kPairs = 10;

double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
/// Returns a + factor b.
Vector plus(Vector a, double factor, const Vector& b) {
  for (std::size_t j = 0; j < a.size(); ++j) a[j] += factor * b[j];
  return a;
}

struct Pair {
  Vector s;    ///< w' - w
  Vector y;    ///< g' - g
  double rho;  ///< 1 / (s . y)
};

/// Returns -H g, by the two-loop recursion.
Vector descent(const std::deque<Pair>& pairs, const Vector& gradient) {
  Vector q = gradient;
  std::vector<double> alpha(pairs.size());
  for (std::size_t i = pairs.size(); i-- > 0;) {
    alpha[i] = pairs[i].rho * dot(pairs[i].s, q);
    q = plus(q, -alpha[i], pairs[i].y);
  }
  const double scale = pairs.empty()
                           ? 1.0 / std::fmax(1.0, std::sqrt(dot(q, q)))
                           : 1.0 / (pairs.back().rho * dot(pairs.back().y, pairs.back().y));
  for (double& v : q) v *= scale;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    q = plus(q, alpha[i] - pairs[i].rho * dot(pairs[i].y, q), pairs[i].s);
  for (double& v : q) v = -v;
  return q;
}

}  // namespace

Vector minimise(const Objective& objective, Vector w, double tolerance, int max_steps) {
  Vector gradient(w.size());
  double value = objective(w, gradient);
  std::deque<Pair> pairs;
  for (int i = 0; i < max_steps && !(std::sqrt(dot(gradient, gradient)) <= tolerance); ++i) {
    const Vector direction = descent(pairs, gradient);
    const double slope = dot(gradient, direction);
    Vector next;
    Vector next_gradient(w.size());
    double next_value = 0.0;
    double step = 1.0;
    for (;; step *= 0.5) {
      next = plus(w, step, direction);
      next_value = objective(next, next_gradient);
      if (next_value <= value + 1e-4 * step * slope) break;
      if (step < 1e-12) return w;
    }
    Pair pair{plus(next, -1.0, w), plus(next_gradient, -1.0, gradient), 0.0};
    const double curvature = dot(pair.s, pair.y);
    if (curvature > 1e-12 * dot(pair.y, pair.y)) {
      pair.rho = 1.0 / curvature;
      pairs.push_back(std::move(pair));
      if (pairs.size() > kPairs) pairs.pop_front();
    }
    w = std::move(next);
    gradient = std::move(next_gradient);
    value = next_value;
  }
  return w;
}

std::vector<float> fit_non_private(const Dataset& train, Loss loss, double l2) {
  const auto features = static_cast<std::size_t>(train.shape.size());
  const auto n = static_cast<double>(train.size());
  Vector x(features);
  std::vector<float> floats(features);
  const auto read = [&](std::size_t i) {
    const std::size_t at = i * features;
    if (!train.is_bytes()) {
      read_floats(train, i, floats);
      std::ranges::copy(floats, x.begin());
      return;
    }
    for (std::size_t j = 0; j < features; ++j)
      x[j] = train.scale * static_cast<float>(train.bytes[at + j]) + train.shift;
  };
  const Objective objective = [&](const Vector& w, Vector& gradient) {
    gradient = w;
    for (double& v : gradient) v *= l2;
    double sum = 0.0;
    for (std::size_t i = 0; i < train.size(); ++i) {
      double z = w[features];
      read(i);
      for (std::size_t j = 0; j < features; ++j) z += w[j] * x[j];
      const double y = train.labels[i] != 0 ? 1.0 : -1.0;
      const double m = y * z;
      const bool hinge = loss == Loss::hinge;
      sum += hinge ? std::fmax(0.0, 1.0 - m)
                   : std::fmax(-m, 0.0) + std::log1p(std::exp(-std::fabs(m)));
      const double c = (hinge ? (m < 1.0 ? -y : 0.0) : -y / (1.0 + std::exp(m))) / n;
      for (std::size_t j = 0; j < features; ++j) gradient[j] += c * x[j];
      gradient[features] += c;
    }
    return sum / n + 0.5 * l2 * dot(w, w);
  };
  const Vector w = minimise(objective, Vector(features + 1, 0.0), 1e-6, 300);
  return {w.begin(), w.end()};
}

}  // namespace cudp
