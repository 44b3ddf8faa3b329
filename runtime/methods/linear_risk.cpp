#include "runtime/methods/linear_risk.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/data/examples.hpp"

namespace cudp {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kBlock = 1024;  // rows per task; results do not depend on the number of
                                      // threads
constexpr std::size_t kLanes = 8;

/// Returns the inner product of x and w, computed as kLanes independent sums for SIMD.
template <class Real>
Real inner_product(std::span<const float> x, const Real* w) {
  const std::size_t n = x.size();
  std::array<Real, kLanes> sums{};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) sums[l] += static_cast<Real>(x[j + l]) * w[j + l];
  for (; j < n; ++j) sums[0] += static_cast<Real>(x[j]) * w[j];
  Real sum = 0;
  for (const Real s : sums) sum += s;
  return sum;
}

/// Derivatives of the loss phi(m) with respect to the margin m.
template <class Real>
struct Derivatives {
  Real first;   ///< phi', derivative of the loss phi(m) in the margin m
  Real second;  ///< phi'', second derivative of the loss phi(m)
};

template <class Real>
Derivatives<Real> loss_derivatives(const RiskSettings& s, Real m) {
  const Real one = 1;
  if (s.loss == Loss::logistic) {
    const Real e = std::exp(-std::fabs(m));
    const Real low = e / (one + e);  // the smaller of the two probabilities
    return {-(m < 0 ? one - low : low), low * (one - low)};
  }
  const Real h = static_cast<Real>(s.huber);
  const Real corner = one + h - m;
  if (corner <= 0) return {0, 0};
  if (corner >= 2 * h) return {-one, 0};
  return {-corner / (2 * h), one / (2 * h)};
}

/// Returns the derivatives of an example's loss, multiplied by the weight of its class, at margin
/// m. scale: a number with the sign of the example's label, -1 or 1; only the sign is used.
template <class Real>
Derivatives<Real> derivatives(const RiskSettings& s, Real m, double scale) {
  const Derivatives<Real> d = loss_derivatives(s, m);
  const Real weight = s.weights.of(scale < 0.0 ? -1.0f : 1.0f);
  return {weight * d.first, weight * d.second};
}

template <class Real>
Real dot(const std::vector<Real>& a, const std::vector<Real>& b) {
  Real sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
template <class Real>
double norm(const std::vector<Real>& a) {
  return static_cast<double>(std::sqrt(dot(a, a)));
}
/// Computes a += factor * b for vectors a and b.
template <class Real, class Other>
void add(std::vector<Real>& a, Real factor, const std::vector<Other>& b) {
  for (std::size_t j = 0; j < b.size(); ++j) a[j] += factor * static_cast<Real>(b[j]);
}

}  // namespace

double loss_curvature(const RiskSettings& s) {
  return s.loss == Loss::logistic ? 0.25 : 1.0 / (2.0 * s.huber);
}

LinearRisk::LinearRisk(const Dataset& data, const RiskSettings& settings)
    : data_(data),
      settings_(settings),
      dimension_(static_cast<std::size_t>(data.shape.size()) + 1),
      curvatures_(data.size(), 0.0),
      team_(settings.threads) {
  ensure(data.rows == nullptr, "the features must be in memory");
  if (data.classes != 2)
    throw InputError("a linear model of one score: expected two classes, found " +
                     std::to_string(data.classes));
  const std::size_t features = dimension_ - 1;
  scales_.reserve(data.size());
  std::vector<float> buffer(features);
  for (std::size_t i = 0; i < data.size(); ++i) {
    double square = 1.0;
    for (const float f : row(i, buffer)) {
      const auto x = static_cast<double>(f);
      square += x * x;
    }
    // Rounded up, so that |v| <= 1 also holds for the rounded v.
    const double length = std::sqrt(square) * (1.0 + 0x1p-30);
    const double scale = std::isfinite(square) ? 1.0 / std::fmax(settings.max_norm, length) : 0.0;
    scales_.push_back(data.labels[i] != 0 ? scale : -scale);
  }
}

std::span<const float> LinearRisk::row(std::size_t i, std::vector<float>& buffer) const {
  const std::size_t features = dimension_ - 1;
  const std::size_t at = i * features;
  if (!data_.is_bytes() && !data_.is_coded()) return data_.float_values().subspan(at, features);
  if (data_.is_coded())
    read_floats(data_, i, buffer);
  else
    for (std::size_t j = 0; j < features; ++j)
      buffer[j] = data_.scale * static_cast<float>(data_.byte_values()[at + j]) + data_.shift;
  return buffer;
}

template <class Real, class Factor>
std::vector<Real> LinearRisk::weighted_sum(const Factor& factor) {
  const std::size_t features = dimension_ - 1;
  const std::size_t blocks = (data_.size() + kBlock - 1) / kBlock;
  std::vector<std::vector<Real>> parts(blocks, std::vector<Real>(dimension_));
  team_.run(blocks, [&](std::size_t b, int) {
    std::vector<Real>& part = parts[b];
    std::vector<float> buffer(features);
    const std::size_t end = std::min((b + 1) * kBlock, data_.size());
    for (std::size_t i = b * kBlock; i < end; ++i) {
      if (scales_[i] == 0.0) continue;
      const std::span<const float> x = row(i, buffer);
      const Real c = factor(i, x) * static_cast<Real>(scales_[i]);
      if (c == 0) continue;
      for (std::size_t j = 0; j < features; ++j) part[j] += c * static_cast<Real>(x[j]);
      part[features] += c;
    }
  });
  std::vector<Real> sum(dimension_);
  for (const std::vector<Real>& part : parts) add(sum, Real{1}, part);
  return sum;
}

Vector LinearRisk::gradient(std::span<const double> w) {
  const std::size_t features = dimension_ - 1;
  return weighted_sum<double>([&](std::size_t i, std::span<const float> x) {
    const double margin = scales_[i] * (inner_product<double>(x, w.data()) + w[features]);
    const Derivatives<double> d = derivatives(settings_, margin, scales_[i]);
    curvatures_[i] = d.second;
    return d.first;
  });
}

std::vector<Extended> LinearRisk::extended_gradient(std::span<const Extended> w) {
  const std::size_t features = dimension_ - 1;
  return weighted_sum<Extended>([&](std::size_t i, std::span<const float> x) {
    const Extended score = inner_product<Extended>(x, w.data()) + w[features];
    const auto d = derivatives(settings_, static_cast<Extended>(scales_[i]) * score, scales_[i]);
    curvatures_[i] = static_cast<double>(d.second);
    return d.first;
  });
}

Vector LinearRisk::curvature_product(std::span<const double> p) {
  const std::size_t features = dimension_ - 1;
  return weighted_sum<double>([&](std::size_t i, std::span<const float> x) {
    if (curvatures_[i] == 0.0) return 0.0;
    return curvatures_[i] * scales_[i] * (inner_product<double>(x, p.data()) + p[features]);
  });
}

/// Returns an upper bound on the rounding error of the risk's gradient, for unit roundoff u, d =
/// dimension and n examples with |v| <= 1. A margin v . w has an error of at most (d + 4) u |w|,
/// which changes phi', the loss's derivative, by at most the curvature times that; computing the
/// weighted phi' adds a few u. A term phi' v has three roundings. Summing a block's terms and the
/// blocks takes at most kBlock + blocks additions, and each partial sum is at most n, the sum of
/// the terms' norms. Everything is doubled to cover terms of second order.
double risk_rounding(const RiskSettings& settings, std::size_t dimension, double norm,
                     double unit) {
  const double n = settings.max_examples;
  const double blocks = n / static_cast<double>(kBlock) + 1.0;
  const double margin = loss_curvature(settings) * (static_cast<double>(dimension) + 4.0) * norm;
  return 2.0 * unit * n * (static_cast<double>(kBlock) + blocks + 32.0 + margin);
}

namespace {

constexpr double kUnit = 0x1p-53;
constexpr double kExtendedUnit =
    0.5 * static_cast<double>(std::numeric_limits<Extended>::epsilon());

/// Bounds on the objective J (RiskProblem) that hold for all data sets that the settings allow.
struct Bounds {
  double smoothness;  ///< L, Lipschitz constant of J's gradient
  double farthest;    ///< W, maximum distance of J's minimum from 0
};

Bounds bounds_of(const RiskSettings& s, const RiskProblem& p) {
  const double at_zero = s.loss == Loss::logistic ? std::log(2.0) : 1.0;  // phi(0)
  const double b = p.linear_bound;
  return {loss_curvature(s) * s.max_examples + p.regulariser,
          (b + std::sqrt(b * b + 2.0 * p.regulariser * s.max_examples * at_zero)) / p.regulariser};
}

/// Gradient of the objective J (RiskProblem) at some weights, and a bound on its rounding error.
template <class Real>
struct JGradient {
  std::vector<Real> value;
  double rounding = 0.0;
  double at_most() const { return norm(value) + rounding; }
};

template <class Real>
JGradient<Real> gradient_at(LinearRisk& risk, const RiskProblem& p, const std::vector<Real>& w) {
  JGradient<Real> g;
  if constexpr (std::is_same_v<Real, double>)
    g.value = risk.gradient(w);
  else
    g.value = risk.extended_gradient(w);
  add(g.value, static_cast<Real>(p.regulariser), w);
  add(g.value, Real{1}, p.linear);
  const double unit = std::is_same_v<Real, double> ? kUnit : kExtendedUnit;
  g.rounding = risk_rounding(risk.settings(), w.size(), norm(w), unit) +
               4.0 * unit * (norm(g.value) + p.regulariser * norm(w) + norm(p.linear));
  return g;
}

/// Solves (H + regulariser I) p = -g approximately for the Newton direction p, with conjugate
/// gradients. H: Hessian of the risk at the weights of the last gradient() call. g: gradient of the
/// objective J. Stops when |(H + regulariser I) p + g| <= share |g|, or after max_steps products
/// with H. Returns the last p.
Vector newton_direction(LinearRisk& risk, double regulariser, const Vector& g, double share,
                        int max_steps) {
  Vector p(g.size(), 0.0);
  Vector r = g;
  for (double& v : r) v = -v;
  Vector along = r;
  double square = dot(r, r);
  const double enough = share * share * square;
  for (int i = 0; i < max_steps && square > enough; ++i) {
    Vector product = risk.curvature_product(along);
    add(product, regulariser, along);
    const double step = square / dot(along, product);
    add(p, step, along);
    add(r, -step, product);
    const double next = dot(r, r);
    for (std::size_t j = 0; j < along.size(); ++j) along[j] = r[j] + next / square * along[j];
    square = next;
  }
  return p;
}

/// Runs Newton's method from the weights w, and writes its last weights to w. Returns nullopt if it
/// did not converge.
template <class Real>
std::optional<RiskMinimum> newton(LinearRisk& risk, const RiskProblem& problem, Vector& w) {
  constexpr int kIterations = 200;
  constexpr int kProducts = 1000;
  const auto at = [&](const Vector& point) {
    return gradient_at(risk, problem, std::vector<Real>(point.begin(), point.end()));
  };
  JGradient<Real> g = at(w);
  const double first = norm(g.value);
  for (int i = 0; i < kIterations; ++i) {
    if (g.at_most() <= problem.tolerance) return RiskMinimum{w, g.at_most()};
    const double length = norm(g.value);
    const double share = std::fmin(0.3, std::sqrt(length / first));
    const Vector p = newton_direction(risk, problem.regulariser,
                                      Vector(g.value.begin(), g.value.end()), share, kProducts);
    double step = 1.0;
    Vector next;
    JGradient<Real> there;
    for (; step > 1e-12; step *= 0.5) {
      next = w;
      add(next, step, p);
      there = at(next);
      if (norm(there.value) <= (1.0 - 1e-4 * step) * length) break;
    }
    if (!(step > 1e-12)) break;
    w = std::move(next);
    g = std::move(there);
  }
  return std::nullopt;
}

std::optional<RiskMinimum> descend(LinearRisk& risk, const RiskProblem& problem) {
  const auto iterations = iterations_for_all_data(risk.settings(), risk.dimension(), problem);
  const double smoothness = bounds_of(risk.settings(), problem).smoothness;
  std::vector<Extended> w(risk.dimension());
  for (std::uint64_t i = 0; i <= iterations.value_or(0); ++i) {
    const JGradient<Extended> g = gradient_at(risk, problem, w);
    // The weights are rounded to double, which changes the gradient by up to L times the rounding
    // error.
    const double found = g.at_most() + smoothness * kUnit * norm(w);
    if (found <= problem.tolerance) return RiskMinimum{Vector(w.begin(), w.end()), found};
    add(w, -1 / static_cast<Extended>(smoothness), g.value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> iterations_for_all_data(const RiskSettings& settings,
                                                     std::size_t dimension,
                                                     const RiskProblem& problem) {
  const auto [smoothness, farthest] = bounds_of(settings, problem);
  const double kappa = smoothness / problem.regulariser;
  // Every iterate is at most three times as far from 0 as the minimum can be.
  const double error = risk_rounding(settings, dimension, 3.0 * farthest, kExtendedUnit) +
                       4.0 * kExtendedUnit *
                           (2.0 * smoothness * farthest + 3.0 * problem.regulariser * farthest +
                            problem.linear_bound);
  const double reached = kappa * error + 10.0 * kExtendedUnit * kappa * smoothness * farthest +
                         2.0 * error + 3.0 * kUnit * smoothness * farthest;
  if (!(reached <= 0.5 * problem.tolerance)) return std::nullopt;
  const double steps = std::ceil(kappa * std::log(4.0 * smoothness * farthest / problem.tolerance));
  if (!(steps <= 1e7)) return std::nullopt;
  return static_cast<std::uint64_t>(std::fmax(steps, 0.0));
}

RiskMinimum minimise_risk(LinearRisk& risk, const RiskProblem& problem, RiskSolver solver) {
  if (solver == RiskSolver::fastest) {
    Vector w(risk.dimension(), 0.0);
    if (auto found = newton<double>(risk, problem, w)) return *found;
    if (auto found = newton<Extended>(risk, problem, w)) return *found;
  }
  if (auto found = descend(risk, problem)) return *found;
  throw Error("the minimum of the regularised loss was not found to a gradient of " +
              std::to_string(problem.tolerance) + "; nothing is released");
}

}  // namespace cudp
