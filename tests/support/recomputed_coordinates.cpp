// AdaCliP: sums of gradients that were transformed coordinate by coordinate, the means and
// deviations that follow from what was released, and the step of the parameters.
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/methods/adaclip.hpp"
#include "tests/support/recomputer.hpp"

namespace cudp::recomputing {

void Recomputer::check_transformed(const transcript::Release& r) {
  engine_->set_beside(now_);
  const Values& scale = engine_->scale();
  const Values& centre = engine_->centre();
  const CoordinateErrors off = now_.coordinates.errors(scale, centre);
  const auto add = [&](const Measured& m, const Values& parameters, std::uint32_t i, Values& sum,
                       double* allowed) {
    Values other = gradient(i, other_answer(i), parameters);
    for (double& x : other) x *= weight(i);
    Values w(scale.size());
    double error = 0.0;
    double shift = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      w[j] = (m.gradient[j] - centre[j]) / scale[j];
      error += std::pow(
          (kGradientError * (std::fabs(m.gradient[j]) + std::fabs(other[j])) + off.centres[j]) /
                  scale[j] +
              std::fabs(w[j]) * off.scale_shares[j],
          2);
      shift += std::pow(centre[j] / scale[j], 2);
    }
    const double factor = 1.0 / std::fmax(1.0, norm_of(w));
    // The norm counts what cancelled (dense_square in kernels/contribution/coordinates.hpp).
    *allowed +=
        2.0 * factor * std::sqrt(error) + 1e-3 * factor * (norm_of(w) + 2.0 * std::sqrt(shift));
    for (std::size_t j = 0; j < w.size(); ++j) sum[j] += factor * w[j];
    check_length(factor * norm_of(w), certificate_.sensitivity, at(r));
  };
  const auto sum_at = [&](const Values& parameters, double* allowed) {
    Values sum(scale.size(), 0.0);
    for (const std::uint32_t i : batch_->examples)
      add(measure_weighted(i, parameters), parameters, i, sum, allowed);
    return sum;
  };
  double allowed = 1e-6 * static_cast<double>(batch_->examples.size());
  const Values parameters = theta();
  const Values sum = sum_at(parameters, &allowed);
  if (!(norm_of(sum) < kLargest)) return leave_out();
  check_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] {
    double unused = 0.0;
    return sum_at(beside(parameters), &unused);
  });
}

void Recomputer::follow_coordinates(const transcript::Update& u) {
  if (!released_ || released_->step != u.step) return;
  const auto& o = config().of<AdaClipOptions>();
  engine_->set_beside(now_);
  const Values& scale = engine_->scale();
  const Values& centre = engine_->centre();
  const CoordinateErrors off = now_.coordinates.errors(scale, centre);
  Values g(scale.size());
  Values errors(scale.size());
  for (std::size_t j = 0; j < g.size(); ++j) {
    const double scaled = scale[j] * released_->values[j] * u.inverse_batch;
    g[j] = scaled + centre[j];
    errors[j] = std::fabs(scaled) * (off.scale_shares[j] + 2.0 * kRounding) + off.centres[j] +
                kRounding * std::fabs(g[j]);
  }
  check_step(u, g, errors);
  now_.coordinates.follow({.beta1 = o.beta1,
                           .beta2 = o.beta2,
                           .min_variance = o.min_variance,
                           .max_variance = o.max_variance,
                           .noise = released_->noise_std * u.inverse_batch,
                           .examples = o.literal ? 1.0 : 1.0 / u.inverse_batch},
                          scale, centre, off, g, errors);
}

void Recomputer::check_step(const transcript::Update& u, const Values& g, const Values& errors) {
  OptimizerSettings o;
  o.kind = config().optimizer;
  o.momentum = static_cast<float>(u.momentum);
  o.beta1 = static_cast<float>(u.beta1);
  o.beta2 = static_cast<float>(u.beta2);
  o.epsilon = static_cast<float>(u.epsilon);
  o.weight_decay = static_cast<float>(u.weight_decay);
  const StepScalars s{.learning_rate = static_cast<float>(u.learning_rate),
                      .noise_std = 0.0f,
                      .inverse_batch = 1.0f,
                      .bias1 = static_cast<float>(u.bias1),
                      .bias2 = static_cast<float>(u.bias2),
                      .ema_decay = static_cast<float>(u.ema_decay),
                      .clip_norm = 1.0f};
  TrainState expected;
  expected.parameters = state_.parameters;
  expected.moment1 = state_.moment1;
  expected.moment2 = state_.moment2;
  expected.average = state_.average;
  const auto size_of = [](const std::vector<float>& v, std::size_t j) {
    return v.empty() ? 0.0 : std::fabs(static_cast<double>(v[j]));
  };
  reference::update(o, s, g, expected);
  const bool adam = o.kind == OptimizerKind::adam || o.kind == OptimizerKind::adamw;
  for (std::size_t j = 0; j < g.size(); ++j) {
    const double before = size_of(state_.parameters, j);
    const double after = static_cast<double>(expected.parameters[j]);
    const double moved = std::fabs(after - static_cast<double>(state_.parameters[j])) /
                         std::fmax(u.learning_rate, 1e-30);
    // Sizes of the terms, which may cancel.
    const double terms =
        adam ? 2.0 + moved
             : 2.0 * (std::fabs(g[j]) + size_of(state_.moment1, j) + u.weight_decay * before);
    // A step of momentum and Nesterov takes g twice at most; one of Adam divides by its root.
    double of_gradient = 2.0 * errors[j];
    if (adam) {
      const double root = std::sqrt(size_of(expected.moment2, j) * u.bias2);
      const double squares =
          (1.0 - u.beta2) * u.bias2 * errors[j] * (2.0 * std::fabs(g[j]) + errors[j]);
      of_gradient =
          ((1.0 - u.beta1) * u.bias1 * errors[j] + moved * squares / std::fmax(root, 1e-30)) /
          (root + u.epsilon);
    }
    const double allowed =
        1e-6 * (before + std::fabs(after)) + u.learning_rate * (1e-4 * terms + of_gradient);
    if (!(std::fabs(static_cast<double>(u.parameters.at(j)) - after) <= allowed) &&
        std::isfinite(after) && std::fabs(after) < kLargest)
      return fault(fmt::format("step {}, parameter {}: expected {:.9g} within {:.3g}, found {:.9g}",
                               u.step, j, after, allowed, u.parameters[j]));
  }
}

}  // namespace cudp::recomputing
