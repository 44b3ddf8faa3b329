#pragma once
// One optimizer step (update.hpp): for one number, inside the kernel that released it, or for all
// numbers in a separate launch.
#include <cstdint>
#include <type_traits>

#include "kernels/common/fixed_point.cuh"
#include "kernels/step/adaclip_math.hpp"
#include "kernels/step/packed_image.cuh"
#include "kernels/step/step_size.hpp"
#include "kernels/step/update.hpp"
#include "kernels/step/update_math.hpp"

namespace cudp::inline CUDP_SIMT {

/// Updates parameter j and its optimizer state by the optimizer a.optimizer, given `released`, the
/// released sum of the parameter's gradients. kind: a.optimizer.kind, known at compile time. s: the
/// step's scalars; a.scalars is not used.
template <OptimizerKind kind>
__device__ __forceinline__ void update_number(const UpdateArgs& a, StepScalars s, std::int64_t j,
                                              float released) {
  if (a.rates != nullptr) s.learning_rate *= a.rates[j];
  constexpr bool has_moment1 = has_first_moment(kind);
  constexpr bool has_moment2 = has_second_moment(kind);
  float g = released * s.inverse_batch;
  if (a.scale != nullptr) {
    float mean = a.scale->shrink * a.mean[j];
    float deviation = a.deviation[j];
    const float scale = ScalarLanes::sqrt(deviation) * a.scale->root;
    g = restored_gradient<ScalarLanes>(s, released, scale, mean);
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
  if (a.packed.places != nullptr) pack_number(a.packed, j, theta);
  if constexpr (has_moment1) a.moment1[j] = m;
  if constexpr (has_moment2) a.moment2[j] = v;
  if (a.average) a.average[j] = moving_average<ScalarLanes>(s, a.average[j], theta);
}

// Optimizer step. grid, block: whole warps, one parameter per thread. kind is a.optimizer.kind.
// scalars [1] in device memory replaces a.scalars, so that a captured graph can be replayed with
// other values; null: a.scalars is used. If size.cursor is not null, the learning rate is divided
// by b, the adaptive step size, and the kernel does nothing unless the step's update may run
// (StepCursor::may_update).
template <OptimizerKind kind>
__global__ void update_kernel(UpdateArgs a, const StepScalars* scalars, AdaptStepSize size) {
  if (size.cursor != nullptr && size.cursor->may_update == 0) return;
  StepScalars s = scalars != nullptr ? *scalars : a.scalars;
  if (size.cursor != nullptr) {
    // Every warp adds the parts in the same order.
    double square = 0.0;
    for (int i = static_cast<int>(threadIdx.x % kWarp); i < size.count; i += kWarp)
      square += size.parts[i];
    square = warp_sum(square);
    const double sum =
        grown_step_size_sum(size.settings, size.cursor->step, size.cursor->step_size_sum, square);
    s.learning_rate = static_cast<float>(static_cast<double>(s.learning_rate) / sqrt(sum));
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      *size.sum = sum;
      size.cursor->used_rate = s.learning_rate;
      size.cursor->awaits_update = 0;
    }
  }
  for_each_number(a.end - a.begin, [&](std::int64_t i) {
    update_number<kind>(a, s, a.begin + i, a.released[a.begin + i]);
  });
}

using UpdateKernel = void (*)(UpdateArgs, const StepScalars*, AdaptStepSize);

template <OptimizerKind k>
using KindOf = std::integral_constant<OptimizerKind, k>;

/// Calls take(KindOf<kind>{}). This turns a kind of optimizer that is known only at run time into a
/// type, with which `take` can choose a template. Take: type of the function `take`.
template <class Take>
auto with_kind(OptimizerKind kind, const Take& take) {
  switch (kind) {
    case OptimizerKind::sgd:
      return take(KindOf<OptimizerKind::sgd>{});
    case OptimizerKind::momentum:
      return take(KindOf<OptimizerKind::momentum>{});
    case OptimizerKind::nesterov:
      return take(KindOf<OptimizerKind::nesterov>{});
    case OptimizerKind::adam:
      return take(KindOf<OptimizerKind::adam>{});
    case OptimizerKind::adamw:
      break;
  }
  return take(KindOf<OptimizerKind::adamw>{});
}

/// Returns the update kernel that was compiled for this kind of optimizer.
inline UpdateKernel update_kernel_of(OptimizerKind kind) {
  return with_kind(kind, [](auto k) -> UpdateKernel { return update_kernel<k.value>; });
}

}  // namespace cudp::inline CUDP_SIMT
