#pragma once
#include "kernels/common/lanes.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// Takes the optimizer's step for one parameter theta, given g, its released mean gradient (sgd:
/// theta -= learning rate g). Also replaces the parameter's moments m and v; an optimizer that has
/// no such moment leaves it unchanged. kind: the optimizer. o: its settings. s: scalars of the
/// step. L: the type of lanes, ScalarLanes or VecLanes.
template <OptimizerKind kind, class L>
CUDP_HD void optimizer_step(const OptimizerSettings& o, const StepScalars& s, typename L::F g,
                            typename L::F& theta, typename L::F& m, typename L::F& v) {
  using F = typename L::F;
  const F minus_rate = L::fill(-s.learning_rate);
  const F decay = L::fill(o.weight_decay);
  if constexpr (kind != OptimizerKind::adamw) g = L::fma(decay, theta, g);

  if constexpr (kind == OptimizerKind::sgd) {
    theta = L::fma(minus_rate, g, theta);
  } else if constexpr (kind == OptimizerKind::momentum) {
    m = L::fma(L::fill(o.momentum), m, g);
    theta = L::fma(minus_rate, m, theta);
  } else if constexpr (kind == OptimizerKind::nesterov) {
    m = L::fma(L::fill(o.momentum), m, g);
    theta = L::fma(minus_rate, L::fma(L::fill(o.momentum), m, g), theta);
  } else {
    m = L::fma(L::fill(1.0f - o.beta1), g, L::fill(o.beta1) * m);
    v = L::fma(L::fill(1.0f - o.beta2), g * g, L::fill(o.beta2) * v);
    const F root = L::sqrt(v * L::fill(s.bias2));
    const F direction = m * L::fill(s.bias1) / (root + L::fill(o.epsilon));
    if constexpr (kind == OptimizerKind::adamw) theta = L::fma(minus_rate * decay, theta, theta);
    theta = L::fma(minus_rate, direction, theta);
  }
}

/// Returns the moving average of a parameter after a step. average: the old average; theta: the
/// parameter's new value. L: the type of lanes, ScalarLanes or VecLanes. s: scalars of the step.
template <class L>
CUDP_HD typename L::F moving_average(const StepScalars& s, typename L::F average,
                                     typename L::F theta) {
  return L::fma(L::fill(s.ema_decay), average - theta, theta);
}

}  // namespace cudp
