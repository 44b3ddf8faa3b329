#include "kernels/activation.hpp"

#include "kernels/activation_math.hpp"
#include "kernels/cpu_ops.hpp"
#include "kernels/vec_lanes.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Calls f(offset in `in`, offset in `out`) for every vector of an image's pixels.
template <class F>
CUDP_INLINE void for_each_vector(const ImageLayout& in, const ImageLayout& out, F f) {
  const std::int64_t n = static_cast<std::int64_t>(out.width) * out.stride;
  for (int y = 0; y < out.height; ++y)
    for (std::int64_t i = 0; i < n; i += kLanes) f(in.at(y, 0) + i, out.at(y, 0) + i);
}

template <Activation kind>
void forward(const ActivationForward& a) {
  for_each_vector(a.in, a.out, [&](std::int64_t in, std::int64_t out) {
    store(a.y + out, activate<VecLanes, kind>(a.function, load(a.x + in)));
  });
  if (kind != Activation::tempered_sigmoid || a.out.channels == a.out.stride) return;
  for (int y = 0; y < a.out.height; ++y)  // f(0) may not be 0
    for (int x = 0; x < a.out.width; ++x)
      for (int c = a.out.channels; c < a.out.stride; ++c) a.y[a.out.at(y, x) + c] = 0.0f;
}

template <Activation kind>
void backward(const ActivationBackward& a) {
  for_each_vector(a.in, a.out, [&](std::int64_t in, std::int64_t out) {
    store(a.dx + in, load(a.dy + out) * activation_slope<VecLanes, kind>(a.function, load(a.y + out)));
  });
}

}  // namespace

void activation_forward(const ActivationForward& a) {
  switch (a.function.kind) {
    case Activation::relu: return forward<Activation::relu>(a);
    case Activation::tanh: return forward<Activation::tanh>(a);
    case Activation::tempered_sigmoid: return forward<Activation::tempered_sigmoid>(a);
  }
}

void activation_backward(const ActivationBackward& a) {
  switch (a.function.kind) {
    case Activation::relu: return backward<Activation::relu>(a);
    case Activation::tanh: return backward<Activation::tanh>(a);
    case Activation::tempered_sigmoid: return backward<Activation::tempered_sigmoid>(a);
  }
}

}  // namespace cudp::CUDP_SIMD
