// Methods for linear models: the directions and losses that DP-AGD descends by, and the minimum
// that output and objective perturbation add noise to.
#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/methods/dp_agd_method.hpp"
#include "runtime/methods/linear_options.hpp"
#include "runtime/methods/risk_options.hpp"
#include "tests/support/recomputer.hpp"

namespace cudp::recomputing {

bool Recomputer::is_drawn(std::uint32_t i) const {
  return batch_ && std::ranges::binary_search(batch_->examples, i);
}

void Recomputer::check_descent(const transcript::Release& r) {
  if (!is_sane()) return leave_out();
  const bool all = config().of<DpAgdOptions>().mini_batch == 0;
  const Values parameters = theta();
  std::size_t n = 0;
  const auto sum_at = [&](const Values& at_parameters, double* allowed) {
    Values sum(at_parameters.size(), 0.0);
    n = 0;
    for (std::uint32_t i = 0; i < train().size(); ++i) {
      if (!all && !is_drawn(i)) continue;
      ++n;
      const Measured m = measure_weighted(i, at_parameters);
      *allowed += 1e-6 * config().clip_norm;
      if (m.norm == 0.0) continue;
      add_clipped(m, {std::fmin(1.0, config().clip_norm / m.norm)}, r.sensitivity,
                  fmt::format("release {}", r.step), sum, allowed);
    }
    return sum;
  };
  double allowed = 0.0;
  const Values sum = sum_at(parameters, &allowed);
  // Its grid may be finer than the one that was summed on (linear_grid).
  allowed += 0x1p-22 * config().clip_norm * static_cast<double>(n);
  check_distance(sum, r, allowed, n, fmt::format("release {}", r.step), [&] {
    double unused = 0.0;
    return sum_at(beside(parameters), &unused);
  });
}

void Recomputer::check_losses(const transcript::Release& r) {
  if (!is_sane() || r.scores.empty()) return leave_out();
  const double most = config().of<LinearOptions>().loss_clip;
  const Values parameters = theta();
  const auto& options = config().of<DpAgdOptions>();
  double expected = 0.0;
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < train().size(); ++i) {
    if (options.mini_batch > 0 && !is_drawn(i)) continue;
    ++n;
    const Values z = reference::logits(net(), parameters, reference::features(train(), i));
    const double loss = reference::loss(net().spec.loss, z, train().labels[i], nullptr);
    expected += std::fmin(weight(i) * loss, most);
  }
  ++found_.sums;
  const double allowed = (1e-5 * expected + 1e-6 * most * static_cast<double>(n));
  if (!(std::fabs(r.scores[0] - expected) <= allowed))
    fault(fmt::format("choice {}: clipped losses add up to {:.9g} within {:.3g}, found {:.9g}",
                      r.step, expected, allowed, r.scores[0]));
}

double Recomputer::margin_derivative(double m) const {
  if (net().spec.loss != Loss::hinge) return -1.0 / (1.0 + std::exp(m));
  const double h = config().of<RiskOptions>().huber;
  return -std::clamp((1.0 + h - m) / (2.0 * h), 0.0, 1.0);
}

void Recomputer::check_minimum(const transcript::Release& r) {
  const auto& options = config().of<RiskOptions>();
  Values w;
  for (const std::int64_t s : r.sums) w.push_back(static_cast<double>(s) * r.grid);
  if (is("objpert")) w = r.scores;
  const std::size_t d = w.size();
  if (d != parameters())
    return fault(fmt::format("a minimum of {} numbers, found {}", parameters(), d));
  const double regulariser = json_.at("regulariser").get<double>();
  // An example's gradient is no longer than 1, and both minima are as exact as the solver's
  // bound.
  const double moves = (1.0 + 2.0 * options.solver_tolerance) / regulariser +
                       std::sqrt(static_cast<double>(d)) * r.grid;
  if (is("outpert") && !(std::fabs(r.sensitivity - moves) <= 1e-9 * moves))
    return fault(fmt::format("minimum: expected a sensitivity of {:.12g}, found {:.12g}", moves,
                             r.sensitivity));
  Values gradient(d, 0.0);
  for (std::uint32_t i = 0; i < train().size(); ++i) {
    Values v = reference::features(train(), i).values;
    v.push_back(1.0);
    const double scale =
        (train().labels[i] != 0 ? 1.0 : -1.0) / std::fmax(options.max_norm, norm_of(v));
    double margin = 0.0;
    for (std::size_t j = 0; j < d; ++j) margin += scale * v[j] * w[j];
    const double c = weight(i) * margin_derivative(margin);
    if (!std::isfinite(scale)) continue;
    for (std::size_t j = 0; j < d; ++j) gradient[j] += c * scale * v[j];
    check_length(std::fabs(c * scale) * norm_of(v), 1.0 + 1e-12, "minimum");
  }
  // The minimum was rounded to the grid, which the curvature shows in the gradient.
  const auto examples = static_cast<double>(train().size());
  const double curvature = net().spec.loss == Loss::hinge ? 0.5 / options.huber : 0.25;
  double allowed =
      options.solver_tolerance + 1e-9 * examples +
      0.5 * (curvature * examples + regulariser) * r.grid * std::sqrt(static_cast<double>(d));
  for (std::size_t j = 0; j < d; ++j) gradient[j] += regulariser * w[j];
  if (is("objpert")) allowed += check_objective_noise(r, w, gradient);
  ++found_.sums;
  if (!(norm_of(gradient) <= allowed))
    fault(
        fmt::format("minimum: the objective's gradient has length {:.6g}, expected {:.3g} at most",
                    norm_of(gradient), allowed));
}

double Recomputer::check_objective_noise(const transcript::Release& r, const Values& w,
                                         Values& gradient) {
  const double std_of_b = json_.at("noise_std").get<double>();
  const double std_of_output = json_.at("output_noise_std").get<double>();
  const double unscaled = 1.0 / std::fmax(config().of<RiskOptions>().max_norm, 1.0);
  double allowed = 0.0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double b = std_of_b * reference::normal(stream(Stream::noise, 0), j);
    gradient[j] += b;
    allowed += 1e-5 * (std::fabs(b) + std_of_b);
    const double z = reference::normal(stream(Stream::noise, 1), j);
    const double left = unscaled * (w[j] + std_of_output * z);
    const double off =
        1e-6 * std::fabs(unscaled * w[j]) + 1e-5 * unscaled * std_of_output * (1.0 + std::fabs(z));
    if (!(std::fabs(r.values.at(j) - left) <= off))
      fault(fmt::format("minimum, number {}: expected {:.9g}, found {:.9g}", j, left, r.values[j]));
  }
  return allowed;
}

}  // namespace cudp::recomputing
