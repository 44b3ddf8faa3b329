#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/layers/activation.hpp"

namespace cudp {

/// Forward: to = f(from). Backward: to = f'(..) from, with f' found from y = f(..), laid out as
/// y_planes. `to` may be `from`.
struct BatchActivation {
  Batch batch;
  Activate function;
  const float* from;
  Planes from_planes;
  const float* y;  ///< null: forward
  Planes y_planes;
  float* to;
  Planes to_planes;
};

inline void validate(const BatchActivation& a) {
  validate(a.batch);
  expect(a.from != nullptr && a.to != nullptr, "activation: expected pointers");
  expect(a.from_planes.pixels() == a.to_planes.pixels() &&
             (a.y == nullptr || a.y_planes.pixels() == a.to_planes.pixels()),
         "activation: expected equal sizes");
}

inline LaunchShape launch_shape(const BatchActivation& a) {
  return strided_shape(std::int64_t{a.batch.room} * a.to_planes.pixels());
}

}  // namespace cudp
