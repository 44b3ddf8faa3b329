#include "runtime/linear/linear_risk.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "runtime/error.hpp"

namespace cudp {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kBlock = 1024;  // rows that one task handles, in the order of the data
constexpr std::size_t kLanes = 8;

/// sum of x[j] w[j], in kLanes chains.
template <class Feature>
double inner_product(std::size_t n, const Feature& x, const double* w) {
  std::array<double, kLanes> sums{};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) sums[l] += x(j + l) * w[j + l];
  for (; j < n; ++j) sums[0] += x(j) * w[j];
  double sum = 0.0;
  for (const double s : sums) sum += s;
  return sum;
}

struct Derivatives {
  double first;   ///< phi'
  double second;  ///< phi''
};

Derivatives derivatives(const RiskSettings& s, double m) {
  if (s.loss == Loss::logistic) {
    const double e = std::exp(-std::fabs(m));
    const double low = e / (1.0 + e);  // the smaller of the two probabilities
    return {-(m < 0.0 ? 1.0 - low : low), low * (1.0 - low)};
  }
  const double slack = 1.0 + s.huber - m;
  if (slack <= 0.0) return {0.0, 0.0};
  if (slack >= 2.0 * s.huber) return {-1.0, 0.0};
  return {-slack / (2.0 * s.huber), 1.0 / (2.0 * s.huber)};
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
double norm(const Vector& a) { return std::sqrt(dot(a, a)); }
/// a += factor b
void add(Vector& a, double factor, std::span<const double> b) {
  for (std::size_t j = 0; j < b.size(); ++j) a[j] += factor * b[j];
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
  if (data.classes != 2)
    throw InputError("a linear model of one score: expected two classes, found " +
                     std::to_string(data.classes));
  const std::size_t features = dimension_ - 1;
  scales_.reserve(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    double square = 1.0;
    for (std::size_t j = 0; j < features; ++j) {
      const auto x = static_cast<double>(feature(i * features + j));
      square += x * x;
    }
    // Rounded up: |v| <= 1 whatever the roundings of the sum.
    const double length = std::sqrt(square) * (1.0 + 0x1p-30);
    const double scale = std::isfinite(square) ? 1.0 / std::fmax(settings.max_norm, length) : 0.0;
    scales_.push_back(data.labels[i] != 0 ? scale : -scale);
  }
}

template <class Factor>
Vector LinearRisk::weighted_sum(const Factor& factor) {
  const std::size_t features = dimension_ - 1;
  const std::size_t blocks = (data_.size() + kBlock - 1) / kBlock;
  std::vector<Vector> parts(blocks, Vector(dimension_, 0.0));
  team_.run(blocks, [&](std::size_t b, int) {
    Vector& part = parts[b];
    const std::size_t end = std::min((b + 1) * kBlock, data_.size());
    for (std::size_t i = b * kBlock; i < end; ++i) {
      if (scales_[i] == 0.0) continue;
      const double c = factor(i) * scales_[i];
      if (c == 0.0) continue;
      for (std::size_t j = 0; j < features; ++j)
        part[j] += c * static_cast<double>(feature(i * features + j));
      part[features] += c;
    }
  });
  Vector sum(dimension_, 0.0);
  for (const Vector& part : parts) add(sum, 1.0, part);
  return sum;
}

Vector LinearRisk::gradient(std::span<const double> w) {
  const std::size_t features = dimension_ - 1;
  return weighted_sum([&](std::size_t i) {
    const auto x = [&](std::size_t j) { return static_cast<double>(feature(i * features + j)); };
    const double margin = scales_[i] * (inner_product(features, x, w.data()) + w[features]);
    const Derivatives d = derivatives(settings_, margin);
    curvatures_[i] = d.second;
    return d.first;
  });
}

Vector LinearRisk::curvature_product(std::span<const double> p) {
  const std::size_t features = dimension_ - 1;
  return weighted_sum([&](std::size_t i) {
    if (curvatures_[i] == 0.0) return 0.0;
    const auto x = [&](std::size_t j) { return static_cast<double>(feature(i * features + j)); };
    return curvatures_[i] * scales_[i] * (inner_product(features, x, p.data()) + p[features]);
  });
}

/// With u = 2^-53 and |v| <= 1: a margin is off by at most (d + 4) u |w|, which moves phi' by the
/// curvature times that, and phi' itself by a few u; a term c v has three roundings; a sum of a
/// block's terms and of the blocks has at most kBlock + blocks additions, each of a sum no longer
/// than that of the terms' lengths, of which there are N, of at most 1. All of it twice, for what
/// is of second order.
double LinearRisk::rounding(double norm) const {
  const auto n = static_cast<double>(data_.size());
  const double blocks = n / static_cast<double>(kBlock) + 1.0;
  const double margin = loss_curvature(settings_) * (static_cast<double>(dimension_) + 4.0) * norm;
  return 0x1p-52 * n * (static_cast<double>(kBlock) + blocks + 32.0 + margin);
}

namespace {

/// J's gradient and how far it may be off.
struct Slope {
  Vector gradient;
  double rounding = 0.0;
};

Slope slope_at(LinearRisk& risk, double regulariser, std::span<const double> linear,
               const Vector& w) {
  Slope s{risk.gradient(w), 0.0};
  add(s.gradient, regulariser, w);
  add(s.gradient, 1.0, linear);
  double square = 0.0;
  for (const double b : linear) square += b * b;
  s.rounding = risk.rounding(norm(w)) +
               0x1p-51 * (norm(s.gradient) + regulariser * norm(w) + std::sqrt(square));
  return s;
}

/// p with |(H + regulariser I) p + g| <= share |g|, or as near as `most` products come.
Vector newton_direction(LinearRisk& risk, double regulariser, const Vector& g, double share,
                        int most) {
  Vector p(g.size(), 0.0);
  Vector r = g;
  for (double& v : r) v = -v;
  Vector along = r;
  double square = dot(r, r);
  const double enough = share * share * square;
  for (int i = 0; i < most && square > enough; ++i) {
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

}  // namespace

RiskMinimum minimise_risk(LinearRisk& risk, double regulariser, std::span<const double> linear,
                          double tolerance) {
  constexpr int kIterations = 200;
  constexpr int kProducts = 1000;
  Vector w(risk.dimension(), 0.0);
  Slope s = slope_at(risk, regulariser, linear, w);
  const double first = norm(s.gradient);
  for (int i = 0; i < kIterations; ++i) {
    const double length = norm(s.gradient);
    if (length + s.rounding <= tolerance) return {w, length + s.rounding};
    const double share = std::fmin(0.3, std::sqrt(length / first));
    const Vector p = newton_direction(risk, regulariser, s.gradient, share, kProducts);
    double step = 1.0;
    Vector next;
    Slope there;
    for (; step > 1e-12; step *= 0.5) {
      next = w;
      add(next, step, p);
      there = slope_at(risk, regulariser, linear, next);
      if (norm(there.gradient) <= (1.0 - 1e-4 * step) * length) break;
    }
    if (!(step > 1e-12)) break;
    w = std::move(next);
    s = std::move(there);
  }
  throw Error("the minimum of the regularised loss was not found to a gradient of " +
              std::to_string(tolerance) + "; nothing is released");
}

}  // namespace cudp
