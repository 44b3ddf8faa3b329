#pragma once
// One optimizer step (update.hpp).
#include <cstdint>

#include "kernels/common/fixed_point.cuh"
#include "kernels/step/restore_math.hpp"
#include "kernels/step/update.hpp"
#include "kernels/step/update_math.hpp"

namespace cudp::inline CUDP_SIMT {

// grid, block: any, a thread a parameter. kind is a.optimizer.kind. scalars [1] in device memory is
// read in place of a.scalars, so that a captured graph can be replayed with others; null: those.
template <OptimizerKind kind>
__global__ void update_kernel(UpdateArgs a, const StepScalars* scalars) {
  constexpr bool has_moment1 = has_first_moment(kind);
  constexpr bool has_moment2 = has_second_moment(kind);
  const StepScalars s = scalars != nullptr ? *scalars : a.scalars;
  for_each_number(a.end - a.begin, [&](std::int64_t i) {
    const std::int64_t j = a.begin + i;
    float g = a.released[j] * s.inverse_batch;
    if (a.scale != nullptr) {
      float mean = a.scale->shrink * a.mean[j];
      float deviation = a.deviation[j];
      const float scale = ScalarLanes::sqrt(deviation) * a.scale->root;
      g = restored_gradient<ScalarLanes>(s, a.released[j], scale, mean);
      update_moments<ScalarLanes>(a.coordinates, s, g, scale, mean, deviation);
      a.mean[j] = mean;
      a.deviation[j] = deviation;
    }
    float theta = a.parameters[j];
    float m = 0.0f;
    float v = 0.0f;
    if constexpr (has_moment1) m = a.moment1[j];
    if constexpr (has_moment2) v = a.moment2[j];
    optimizer_step<kind, ScalarLanes>(a.optimizer, s, g, theta, m, v);
    a.parameters[j] = theta;
    if constexpr (has_moment1) a.moment1[j] = m;
    if constexpr (has_moment2) a.moment2[j] = v;
    if (a.average) a.average[j] = moving_average<ScalarLanes>(s, a.average[j], theta);
  });
}

using UpdateKernel = void (*)(UpdateArgs, const StepScalars*);

/// The kernel of an optimizer, for a launch.
inline UpdateKernel update_kernel_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return update_kernel<OptimizerKind::sgd>;
    case OptimizerKind::momentum:
      return update_kernel<OptimizerKind::momentum>;
    case OptimizerKind::nesterov:
      return update_kernel<OptimizerKind::nesterov>;
    case OptimizerKind::adam:
      return update_kernel<OptimizerKind::adam>;
    case OptimizerKind::adamw:
      break;
  }
  return update_kernel<OptimizerKind::adamw>;
}

}  // namespace cudp::inline CUDP_SIMT
