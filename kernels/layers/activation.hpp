#pragma once
#include "kernels/common/counted_planes.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/image.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Applies an activation f to one example's image on the CPU: y = f(x) for every pixel and channel.
/// The border around the image, and the padding channels of each pixel (those after its last real
/// channel), stay zero. y may be x.
struct ActivationForward {
  Activate function;
  ImageLayout in;
  ImageLayout out;
  const float* x;
  float* y;
};

/// Backward pass of an activation f for one example on the CPU: dx = f'(x) dy. f'(x) is computed
/// from the output y = f(x). dx may be dy. `out` is the layout of y and dy.
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

/// Applies an activation f to a micro-batch on a device. Forward pass: to = f(from). Backward pass:
/// to = f'(x) from, where x is the activation's input, and f'(x) is computed from its output y =
/// f(x). y_planes is the layout of y. `to` may be `from`.
struct ActivationPass {
  Batch batch;
  Activate function;
  const float* from;
  CountedPlanes from_planes;
  const float* y;  ///< output of the activation, for the backward pass; null: forward
  CountedPlanes y_planes;
  float* to;
  CountedPlanes to_planes;
  Precision to_as = Precision::fp32;  ///< tf32: `to` is rounded to TF32
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
