#pragma once
#include "kernels/common/counted_planes.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
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
  CountedPlanes from_planes;
  const float* y;  ///< null: forward
  CountedPlanes y_planes;
  float* to;
  CountedPlanes to_planes;
  Precision to_as = Precision::fp32;  ///< as what `to` is stored
};

inline void validate(const ActivationPass& a) {
  validate(a.batch);
  expect(a.from != nullptr && a.to != nullptr, "activation: expected pointers");
  expect(same_pixels(a.from_planes, a.to_planes) &&
             (a.y == nullptr || same_pixels(a.y_planes, a.to_planes)),
         "activation: expected equal sizes");
}

inline LaunchShape launch_shape(const ActivationPass& a) {
  return pixel_shape(a.batch, a.to_planes.pixels());
}

}  // namespace device

}  // namespace cudp
