#include "bench/reproduce/linear_sgd.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "privacy/calibrate.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {
namespace {

/// Returns epsilon of the composition if every step is (e, .)-DP for its sample.
double composed(double e, double q, double steps, double slack) {
  const double step = std::log1p(q * std::expm1(e));
  return step * std::sqrt(2.0 * steps * std::log(1.0 / slack)) + steps * step * std::expm1(step);
}

double sigma_advanced(double epsilon, double delta, double q, std::uint64_t steps) {
  const auto t = static_cast<double>(steps);
  double low = 0.0;  // bounds of e, by bisection: composed() grows with e
  double high = 1.0;
  if (composed(high, q, t, 0.5 * delta) > epsilon)
    for (int i = 0; i < 200; ++i) {
      const double middle = 0.5 * (low + high);
      (composed(middle, q, t, 0.5 * delta) <= epsilon ? low : high) = middle;
    }
  else
    low = high;  // the classical Gaussian mechanism requires e <= 1
  if (low == 0.0) return std::numeric_limits<double>::infinity();
  return std::sqrt(2.0 * std::log(1.25 * q * t / (0.5 * delta))) / low;
}

}  // namespace

double sgd_sigma(SgdAccounting accounting, double epsilon, double delta, double q,
                 std::uint64_t steps) {
  if (accounting == SgdAccounting::advanced) return sigma_advanced(epsilon, delta, q, steps);
  const std::span<const double> orders = privacy::default_orders();
  const privacy::AccountantOptions options{.kind = privacy::AccountantKind::rdp,
                                           .orders = {orders.begin(), orders.end()}};
  try {
    return privacy::calibrate_sigma({}, {privacy::PoissonGaussian{q, 1.0}, steps}, epsilon, delta,
                                    options);
  } catch (const std::domain_error&) {
    return std::numeric_limits<double>::infinity();
  }
}

std::vector<float> run_linear_sgd(const LinearSgd& settings, SgdAccounting accounting,
                                  double epsilon, double delta, LinearEngine& engine,
                                  const RandomKey& key) {
  const auto n = static_cast<double>(engine.size());
  const double batch = std::sqrt(n);
  const std::uint64_t threshold = poisson_threshold(batch, n);
  const auto steps = settings.epochs * static_cast<std::uint64_t>(std::round(n / batch));
  const double sigma =
      sgd_sigma(accounting, epsilon, delta, static_cast<double>(threshold) * 0x1p-32, steps);
  std::vector<float> w(static_cast<std::size_t>(engine.dimension()), 0.0f);
  if (!std::isfinite(sigma)) return w;
  const double noise = sigma * linear_gradient_sensitivity(settings.clip, engine.dimension(),
                                                           static_cast<double>(engine.size()));
  for (std::uint64_t t = 0; t < steps; ++t) {
    engine.draw_batch({Generator::chacha20, key, Stream::sampling, t}, threshold);
    const std::vector<double> sum = engine.clipped_gradient_sum(w, settings.clip);
    const std::vector<float> z =
        normal_numbers({Generator::chacha20, key, Stream::noise, t}, w.size());
    const double rate =
        settings.learning_rate * (1.0 - static_cast<double>(t) / static_cast<double>(steps));
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double g = (sum[j] + noise * static_cast<double>(z[j])) / batch +
                       settings.l2 * static_cast<double>(w[j]);
      w[j] = static_cast<float>(static_cast<double>(w[j]) - rate * g);
    }
  }
  return w;
}

}  // namespace cudp
