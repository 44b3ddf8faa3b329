#include "kernels/step/update.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace cudp {

namespace {

void expect(bool ok, const char* what, double found) {
  if (!ok)
    throw std::invalid_argument(std::string("update: expected ") + what + ", found " +
                                std::to_string(found));
}

void expect_array(bool needed, const float* array, const char* name) {
  if (needed && !array)
    throw std::invalid_argument(std::string("update: expected an array `") + name +
                                "`, found none");
}

}  // namespace

void validate(const UpdateArgs& a) {
  if (a.begin < 0 || a.end < a.begin)
    throw std::invalid_argument("update: expected 0 <= begin <= end");
  const OptimizerKind kind = a.optimizer.kind;
  const bool adaptive = has_second_moment(kind);
  const bool restores = a.scale != nullptr;
  if (a.end > a.begin) {
    expect_array(true, a.released, "released");
    expect_array(true, a.parameters, "parameters");
    expect_array(has_first_moment(kind), a.moment1, "moment1");
    expect_array(adaptive, a.moment2, "moment2");
    expect_array(restores, a.mean, "mean");
    expect_array(restores, a.deviation, "deviation");
    if (!restores && (a.mean || a.deviation))
      throw std::invalid_argument("update: expected the coordinates' scale, found none");
  }
  if (restores) validate(a.coordinates);

  const StepScalars& s = a.scalars;
  expect(std::isfinite(s.learning_rate), "a finite learning_rate", s.learning_rate);
  expect(std::isfinite(s.noise_std) && s.noise_std >= 0, "a finite noise_std >= 0", s.noise_std);
  expect(std::isfinite(s.inverse_batch) && s.inverse_batch > 0, "a finite inverse_batch > 0",
         s.inverse_batch);
  if (a.average) expect(s.ema_decay >= 0 && s.ema_decay <= 1, "an ema_decay in 0..1", s.ema_decay);

  const OptimizerSettings& o = a.optimizer;
  expect(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "a finite weight_decay >= 0",
         o.weight_decay);
  if (kind == OptimizerKind::momentum || kind == OptimizerKind::nesterov)
    expect(o.momentum >= 0 && o.momentum < 1, "a momentum in [0, 1)", o.momentum);
  if (adaptive) {
    expect(o.beta1 >= 0 && o.beta1 < 1, "a beta1 in [0, 1)", o.beta1);
    expect(o.beta2 >= 0 && o.beta2 < 1, "a beta2 in [0, 1)", o.beta2);
    expect(std::isfinite(o.epsilon) && o.epsilon > 0, "a finite epsilon > 0", o.epsilon);
    expect(std::isfinite(s.bias1) && s.bias1 >= 1, "a finite bias1 >= 1", s.bias1);
    expect(std::isfinite(s.bias2) && s.bias2 >= 1, "a finite bias2 >= 1", s.bias2);
  }
}

}  // namespace cudp
