#include "privacy/verify/optimizer.hpp"

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "privacy/text/number.hpp"

namespace cudp::verify {
namespace {

/// Bound on the relative error of rounding a number to float, 2^-24. The factor 1 + 2^-28 allows
/// for the rounding, 2^-53, of the checker's own arithmetic in double.
constexpr double kRounding = 0x1p-24 * (1.0 + 0x1p-28);

Approximate rounded(double value, double error) {
  error += kRounding * (std::fabs(value) + error) + 0x1p-126;
  if (!(std::fabs(value) + error < static_cast<double>(FLT_MAX)))
    error = std::numeric_limits<double>::infinity();
  return {value, error};
}

Approximate exactly(double x) { return {x, 0.0}; }

/// A parameter and its optimizer moments after a step, each with a bound on the engine's rounding
/// error.
struct Parameter {
  Approximate parameter, moment1, moment2;
};

/// Computes one parameter and its moments after an optimizer step, with bounds on the engine's
/// rounding errors. theta_before, m_before, v_before: parameter and moments before the step. g_sum:
/// this parameter's number in the noisy gradient sum. m_after, v_after: the moments that the engine
/// stored. scale: factor on this parameter's learning rate. u: the update, with the optimizer's
/// constants.
Parameter step(const transcript::Update& u, double scale, double theta_before, double m_before,
               double v_before, double g_sum, double m_after, double v_after) {
  const Approximate theta = exactly(theta_before);
  const Approximate rate =
      scale == 1.0 ? exactly(u.learning_rate) : exactly(u.learning_rate) * exactly(scale);
  const Approximate decay = exactly(u.weight_decay);
  const bool adamw = u.optimizer == "adamw";
  Approximate g = exactly(g_sum) * exactly(u.inverse_batch);
  // The product 0 * infinity is NaN, so an infinite weight is decayed even at decay 0.
  if (!adamw && (u.weight_decay != 0.0 || !std::isfinite(theta_before))) g = decay * theta + g;

  Parameter p;
  if (u.optimizer == "sgd") {
    p.parameter = theta - rate * g;
  } else if (u.optimizer == "momentum" || u.optimizer == "nesterov") {
    const Approximate momentum = exactly(u.momentum);
    p.moment1 = momentum * exactly(m_before) + g;
    const Approximate m = exactly(m_after);
    p.parameter = theta - rate * (u.optimizer == "momentum" ? m : momentum * m + g);
  } else {
    const Approximate one = exactly(1.0);
    p.moment1 = exactly(u.beta1) * exactly(m_before) + (one - exactly(u.beta1)) * g;
    p.moment2 = exactly(u.beta2) * exactly(v_before) + (one - exactly(u.beta2)) * (g * g);
    const Approximate root = square_root(exactly(v_after) * exactly(u.bias2));
    const Approximate direction = exactly(m_after) * exactly(u.bias1) / (root + exactly(u.epsilon));
    p.parameter = theta;
    if (adamw) p.parameter = p.parameter - rate * decay * theta;
    p.parameter = p.parameter - rate * direction;
  }
  return p;
}

std::string wrong(const char* what, std::size_t j, const Approximate& expected, float found) {
  return std::string(what) + " " + std::to_string(j) + ": expected " +
         privacy::number(expected.value) + " within " + privacy::number(expected.error) +
         ", found " + privacy::number(static_cast<double>(found));
}

double at(const std::vector<float>& array, std::size_t j) {
  return array.empty() ? 0.0 : static_cast<double>(array[j]);
}

}  // namespace

bool Approximate::admits(float x) const {
  if (!std::isfinite(value) || !std::isfinite(error)) return true;
  return std::fabs(static_cast<double>(x) - value) <= error;
}

Approximate operator+(const Approximate& a, const Approximate& b) {
  return rounded(a.value + b.value, a.error + b.error);
}
Approximate operator-(const Approximate& a, const Approximate& b) {
  return rounded(a.value - b.value, a.error + b.error);
}
Approximate operator*(const Approximate& a, const Approximate& b) {
  return rounded(a.value * b.value,
                 std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
}
Approximate operator/(const Approximate& a, const Approximate& b) {
  const double quotient = a.value / b.value;
  const double min_divisor = std::fabs(b.value) - b.error;
  if (!(min_divisor > 0.0)) return {quotient, std::numeric_limits<double>::infinity()};
  return rounded(quotient, (a.error + std::fabs(quotient) * b.error) / min_divisor);
}
Approximate square_root(const Approximate& a) {
  const double root = std::sqrt(std::fmax(a.value, 0.0));
  // |sqrt(x) - sqrt(y)| <= |x - y| / sqrt(x), and <= sqrt(|x - y|)
  const double near_zero = std::sqrt(a.error);
  return rounded(root, root > 0.0 ? std::fmin(a.error / root, near_zero) : near_zero);
}

std::string follows(const transcript::State& before, std::span<const double> released,
                    const transcript::Update& u) {
  const std::size_t n = u.parameters.size();
  const bool moments = u.optimizer != "sgd";
  const bool squares = u.optimizer == "adam" || u.optimizer == "adamw";
  if (moments && !squares && u.optimizer != "momentum" && u.optimizer != "nesterov")
    return "expected sgd, momentum, nesterov, adam or adamw, found " + u.optimizer;
  if (before.parameters.size() != n || released.size() != n)
    return "expected " + std::to_string(n) + " parameters before and released, found " +
           std::to_string(before.parameters.size()) + " and " + std::to_string(released.size());
  const auto fits = [&](const std::vector<float>& a, bool is_used) {
    return a.size() == (is_used ? n : 0);
  };
  if (!fits(u.moment1, moments) || !fits(before.moment1, moments) || !fits(u.moment2, squares) ||
      !fits(before.moment2, squares) || u.average.size() != before.average.size() ||
      (!u.average.empty() && u.average.size() != n))
    return "moments or averages of another length";
  if (!u.lr_scale.empty() && u.lr_scale.size() != n)
    return "factors of the learning rate of another length";

  for (std::size_t j = 0; j < n; ++j) {
    if (!u.coordinates) {
      const Parameter p =
          step(u, u.lr_scale.empty() ? 1.0 : static_cast<double>(u.lr_scale[j]),
               at(before.parameters, j), at(before.moment1, j), at(before.moment2, j), released[j],
               at(u.moment1, j), at(u.moment2, j));
      if (moments && !p.moment1.admits(u.moment1[j]))
        return wrong("moment", j, p.moment1, u.moment1[j]);
      if (squares && !p.moment2.admits(u.moment2[j]))
        return wrong("second moment", j, p.moment2, u.moment2[j]);
      if (!p.parameter.admits(u.parameters[j]))
        return wrong("parameter", j, p.parameter, u.parameters[j]);
    }
    if (u.average.empty()) continue;
    const Approximate theta = exactly(u.parameters[j]);
    const Approximate average = exactly(u.ema_decay) * (exactly(before.average[j]) - theta) + theta;
    if (!average.admits(u.average[j])) return wrong("average", j, average, u.average[j]);
  }
  return "";
}

std::string follows_descent(const transcript::State& before, std::span<const Measured> sums,
                            const transcript::Update& u) {
  const std::size_t n = u.parameters.size();
  if (before.parameters.size() != n) return "parameters of another length";
  if (sums.empty()) return "no release before it";
  std::vector<double> g(n);
  double precision = 0.0;
  for (const Measured& m : sums) {
    if (m.values.size() != n) return "a release of another length";
    const double weight = 1.0 / (m.sigma * m.sigma);
    for (std::size_t j = 0; j < n; ++j) g[j] += weight * m.values[j];
    precision += weight;
  }
  double square = 0.0;
  // Largest absolute value of a term. If terms cancel, the rounding error is proportional to this
  // value.
  double largest = 0.0;
  for (std::size_t j = 0; j < n; ++j) {
    for (const Measured& m : sums) largest = std::fmax(largest, std::fabs(m.values[j]));
    const double pull = u.weight_decay * static_cast<double>(before.parameters[j]);
    largest = std::fmax(largest, std::fabs(pull));
    g[j] = g[j] / precision + pull;
    square += g[j] * g[j];
  }
  const double length = std::sqrt(square);
  // Bound on the rounding error in double, of a few roundings for each sum and parameter; far below
  // one rounding in float.
  const auto roundings =
      0x1p-51 * (static_cast<double>(n) + 8.0 * static_cast<double>(sums.size()));
  for (std::size_t j = 0; j < n; ++j) {
    const double part = length > 0.0 ? g[j] / length : 0.0;
    const double off = length > 0.0 ? roundings * largest / length : 0.0;
    const Approximate direction = rounded(part, off);
    const double moved = static_cast<double>(before.parameters[j]) - u.learning_rate * part;
    const Approximate expected =
        rounded(moved, u.learning_rate * direction.error + 0x1p-52 * std::fabs(moved));
    if (!expected.admits(u.parameters[j])) return wrong("parameter", j, expected, u.parameters[j]);
  }
  return "";
}

}  // namespace cudp::verify
