#include "runtime/methods/schedule.hpp"

#include <cmath>
#include <numbers>

namespace cudp {

namespace {

/// Learning rate at the end of the square-root schedule (Wu et al. 2021, Table 1).
constexpr double kMinRate = 1e-10;

}  // namespace

float float_above(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafterf(f, HUGE_VALF) : f;
}

float float_below(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) > x ? std::nextafterf(f, 0.0f) : f;
}

OptimizerSettings optimizer_settings(const TrainConfig& c) {
  return {.kind = c.optimizer,
          .momentum = static_cast<float>(c.momentum),
          .beta1 = static_cast<float>(c.beta1),
          .beta2 = static_cast<float>(c.beta2),
          .weight_decay = static_cast<float>(c.weight_decay),
          .keep_average = c.ema > 0.0};
}

double learning_rate(const TrainConfig& c, std::uint64_t steps, std::uint64_t steps_per_epoch,
                     std::uint64_t step) {
  const auto t = static_cast<double>(step);
  const double done = t / static_cast<double>(steps);
  double factor = 1.0;
  switch (c.schedule) {
    case ScheduleKind::constant:
    case ScheduleKind::adaptive:
      break;
    case ScheduleKind::step: {
      const std::uint64_t decays =
          step / steps_per_epoch / static_cast<std::uint64_t>(c.decay_every);
      factor = std::pow(c.decay_factor, static_cast<double>(decays));
      break;
    }
    case ScheduleKind::cosine:
      factor = c.final_lr + (1.0 - c.final_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
      break;
    case ScheduleKind::polynomial:
      factor = 1.0 / std::sqrt(c.poly_a + c.poly_c * t);
      break;
    case ScheduleKind::square_root:
      // lr - a sqrt(t), with a such that step `steps` would have the rate kMinRate.
      factor = 1.0 - (1.0 - kMinRate / std::fmax(c.lr, kMinRate)) * std::sqrt(done);
      break;
  }
  const auto warmup = static_cast<double>(c.warmup);
  if (t + 1.0 < warmup) factor *= (t + 1.0) / warmup;
  return c.lr * factor;
}

Schedule::Schedule(const TrainConfig& config, const PrivacyPlan& plan,
                   std::uint64_t steps_per_epoch)
    : config_(config), plan_(plan), steps_per_epoch_(steps_per_epoch) {}

double Schedule::learning_rate(std::uint64_t step) const {
  return cudp::learning_rate(config_, plan_.steps, steps_per_epoch_, step);
}

StepScalars Schedule::at(std::uint64_t step) const {
  const TrainConfig& c = config_;
  const double t = static_cast<double>(step) + 1.0;
  const bool corrects_bias = has_second_moment(c.optimizer);
  StepScalars s{};
  s.learning_rate = static_cast<float>(learning_rate(step));
  s.noise_std = float_above(plan_.noise_std_at(step));
  s.inverse_batch = static_cast<float>(1.0 / plan_.expected_batch);
  s.bias1 = static_cast<float>(corrects_bias ? 1.0 / (1.0 - std::pow(c.beta1, t)) : 1.0);
  s.bias2 = static_cast<float>(corrects_bias ? 1.0 / (1.0 - std::pow(c.beta2, t)) : 1.0);
  // The decay rate of the average is smaller in the first steps. Otherwise the initial weights
  // would keep a large share of the average.
  s.ema_decay = static_cast<float>(std::fmin(c.ema, t / (t + 9.0)));
  s.clip_norm = float_below(plan_.clip_norm);
  return s;
}

}  // namespace cudp
