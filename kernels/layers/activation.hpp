#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/layers/image.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// y = f(x) over an image, border and padding channels staying zero. y may be x.
struct ActivationForward {
  Activate function;
  ImageLayout in;
  ImageLayout out;
  const float* x;
  float* y;
};

/// dx = f'(x) dy, with f' found from y = f(x). dx may be dy. `out` lays out y and dy.
struct ActivationBackward {
  Activate function;
  ImageLayout in;
  ImageLayout out;
  const float* y;
  const float* dy;
  float* dx;
};

// --- CUDA ---

namespace device {

/// Forward: to = f(from). Backward: to = f'(..) from, with f' found from y = f(..), laid out as
/// y_planes. `to` may be `from`.
struct ActivationPass {
  Batch batch;
  Activate function;
  const float* from;
  Planes from_planes;
  const float* y;  ///< null: forward
  Planes y_planes;
  float* to;
  Planes to_planes;
};

inline void validate(const ActivationPass& a) {
  validate(a.batch);
  expect(a.from != nullptr && a.to != nullptr, "activation: expected pointers");
  expect(a.from_planes.pixels() == a.to_planes.pixels() &&
             (a.y == nullptr || a.y_planes.pixels() == a.to_planes.pixels()),
         "activation: expected equal sizes");
}

inline LaunchShape launch_shape(const ActivationPass& a) {
  return strided_shape(std::int64_t{a.batch.capacity} * a.to_planes.pixels());
}

}  // namespace device

}  // namespace cudp
