#pragma once
#include "kernels/layers/image.hpp"

namespace cudp {

enum class Activation { relu, tanh, tempered_sigmoid };

/// relu: max(x, 0). tanh. tempered_sigmoid: scale / (1 + exp(-temperature x)) - offset
/// (Papernot et al. 2021, eq. 1); its three numbers are ignored by the others.
struct Activate {
  Activation kind = Activation::relu;
  float scale = 2.0f;
  float temperature = 2.0f;
  float offset = 1.0f;
};

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

}  // namespace cudp
