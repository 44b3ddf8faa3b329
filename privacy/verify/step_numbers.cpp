#include "privacy/verify/step_numbers.hpp"

#include <cmath>
#include <string>
#include <tuple>

namespace cudp::verify {
namespace {

std::string at(std::uint64_t step) { return "step " + std::to_string(step); }

}  // namespace

/// Checks the constants of an update: those of the optimizer and of the weight average, the bias
/// corrections and the learning rate.
void StepNumbers::check(const transcript::Update& u, const transcript::Release* released) {
  const auto same = [&](const transcript::Update& a) {
    return std::tuple(a.optimizer, a.momentum, a.beta1, a.beta2, a.epsilon, a.weight_decay);
  };
  if (first_update_ && same(*first_update_) != same(u))
    findings_.add("update", at(u.step) + ": the optimizer's numbers are not those of before");
  if (!first_update_) {
    first_update_ = u;
    first_update_->parameters.clear();
    check_optimizer(u);
  }
  const auto t = static_cast<double>(u.step) + 1.0;
  const bool adam = u.optimizer == "adam" || u.optimizer == "adamw";
  const auto check_bias = [&](const char* name, double beta, double bias) {
    if (!adam) return findings_.expect(bias == 1.0, "update", at(u.step) + ", " + name, 1.0, bias);
    // The update uses beta rounded to float, the correction the unrounded one.
    const auto corrected = [&](double b) { return 1.0 / (1.0 - std::pow(b, t)); };
    const double low = corrected(beta * (1.0 - 0x1p-24)) * (1.0 - 0x1p-22);
    const double high = corrected(beta * (1.0 + 0x1p-24)) * (1.0 + 0x1p-22);
    findings_.expect(bias >= low && (bias <= high || !(high > 0.0)), "update",
                     at(u.step) + ", " + name, corrected(beta), bias);
  };
  check_bias("bias1", u.beta1, u.bias1);
  check_bias("bias2", u.beta2, u.bias2);
  if (!u.average.empty()) check_average(u, t);
  check_rate(u, released);
}

void StepNumbers::check_optimizer(const transcript::Update& u) {
  if (settings_.empty())
    return findings_.skip("learning rates and the optimizer's numbers: no settings");
  const auto check = [&](const char* key, double found) {
    const double stated = settings_.number(key);
    findings_.expect(static_cast<double>(static_cast<float>(stated)) == found, "update",
                     std::string("settings' ") + key, stated, found);
  };
  if (settings_.text("optimizer") != u.optimizer)
    findings_.add("update",
                  "optimizer: expected " + settings_.text("optimizer") + ", found " + u.optimizer);
  check("momentum", u.momentum);
  check("beta1", u.beta1);
  check("beta2", u.beta2);
  check("weight-decay", u.weight_decay);
  if (u.average.empty() != (settings_.number("ema") == 0.0))
    findings_.add("update", u.average.empty()
                                ? "average of the weights: expected one, as the settings have ema "
                                  "> 0, found none"
                                : "average of the weights: expected none, as the settings have "
                                  "ema = 0, found one");
}

/// Checks the decay of the weight average, which grows in the first steps and is then constant.
void StepNumbers::check_average(const transcript::Update& u, double t) {
  const double early = t / (t + 9.0);
  const auto is_close = [&](double x) { return std::fabs(u.ema_decay - x) <= 1e-7; };
  if (!settings_.empty()) {
    const double decay = std::fmin(settings_.number("ema"), early);
    return findings_.expect(is_close(decay), "update", at(u.step) + ", weight of the average",
                            decay, u.ema_decay);
  }
  if (is_close(early)) return;
  if (!ema_) ema_ = u.ema_decay;
  findings_.expect(u.ema_decay == *ema_ && *ema_ < early, "update",
                   at(u.step) + ", weight of the average", *ema_, u.ema_decay);
}

void StepNumbers::check_rate(const transcript::Update& u, const transcript::Release* released) {
  if (settings_.empty() || certificate_.steps_planned == 0) return;
  double rate = scheduled_rate(settings_, certificate_.steps_planned, steps_per_epoch_, u.step);
  if (certificate_.method == "adp-sgd" && settings_.text("schedule") == "adaptive") {
    const auto b2 = grown(u, released);
    if (!b2) return findings_.skip("adaptive steps: releases before are not in the transcript");
    // The engine rounds the rate to float before the division.
    rate = static_cast<double>(static_cast<float>(rate)) / std::sqrt(*b2);
  }
  findings_.expect(std::fabs(u.learning_rate - rate) <= 1e-6 * std::fabs(rate) + 1e-44, "update",
                   at(u.step) + ", learning rate", rate, u.learning_rate);
}

/// Returns b^2 after a step. The adaptive step size is learning rate / b, and each step adds
/// max(beta |g|^2, nu) to b^2, where g is the noisy gradient and beta = max(weight / (1 + t mod
/// epoch), 1). t: index of the step; epoch: number of steps of an epoch; weight, nu: settings
/// adaptive-weight and adaptive-least. Returns nullopt if an earlier noisy gradient is missing.
std::optional<double> StepNumbers::grown(const transcript::Update& u,
                                         const transcript::Release* released) {
  const auto before = steps_b2_.find(u.step);
  if (u.step == 0) steps_b2_[0] = settings_.number("adaptive-start");
  if (released == nullptr || (u.step > 0 && before == steps_b2_.end())) return std::nullopt;
  double square = 0.0;
  for (const double x : released->values) {
    const double g = static_cast<double>(static_cast<float>(x * u.inverse_batch));
    square += g * g;
  }
  const double beta = std::fmax(1.0, settings_.number("adaptive-weight") /
                                         static_cast<double>(1 + u.step % steps_per_epoch_));
  return steps_b2_[u.step + 1] =
             steps_b2_[u.step] + std::fmax(beta * square, settings_.number("adaptive-least"));
}

}  // namespace cudp::verify
