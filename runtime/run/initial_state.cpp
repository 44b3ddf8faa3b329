#include "runtime/run/initial_state.hpp"

#include <cmath>

#include "runtime/run/initial_weights.hpp"

namespace cudp {

TrainState initial_state(const Experiment& e, const RandomKey& key) {
  TrainState s;
  s.parameters = initial_weights(e.network, e.config.rng, key);
  const OptimizerKind kind = e.config.optimizer;
  const bool adam = kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
  if (kind != OptimizerKind::sgd) s.moment1.resize(s.parameters.size());
  if (adam) s.moment2.resize(s.parameters.size());
  if (e.config.ema > 0.0) s.average = s.parameters;
  if (e.config.method == MethodKind::adaclip) {
    s.mean.resize(s.parameters.size());
    const double start = std::sqrt(e.config.adaclip_least * e.config.adaclip_most);
    s.deviation.assign(s.parameters.size(), static_cast<float>(start));
  }
  if (e.config.schedule == ScheduleKind::adaptive) s.step_size_sum = e.config.adaptive_start;
  return s;
}

}  // namespace cudp
