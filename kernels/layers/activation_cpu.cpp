#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/layers/activation.hpp"
#include "kernels/layers/activation_math.hpp"

namespace cudp::CUDP_SIMD {
namespace {

/// Calls f(offset in an image of layout `in`, offset in one of layout `out`) for every SIMD vector
/// of pixels and channels. F: type of the function f.
template <class F>
CUDP_INLINE void for_each_vector(const ImageLayout& in, const ImageLayout& out, F f) {
  const std::int64_t n = static_cast<std::int64_t>(out.width) * out.stride;
  for (int y = 0; y < out.height; ++y)
    for (std::int64_t i = 0; i < n; i += kLanes) f(in.at(y, 0) + i, out.at(y, 0) + i);
}

template <class F>
void forward(const ActivationForward& a, F f) {
  for_each_vector(a.in, a.out, [&](std::int64_t in, std::int64_t out) {
    store(a.y + out, f.value(load(a.x + in)));
  });
}

template <class F>
void backward(const ActivationBackward& a, F f) {
  for_each_vector(a.in, a.out, [&](std::int64_t in, std::int64_t out) {
    store(a.dx + in, load(a.dy + out) * f.derivative(load(a.y + out)));
  });
}

TemperedSigmoid tempered(const Activate& f) {
  return TemperedSigmoid(f.scale, f.temperature, f.offset);
}

/// Sets the padding channels of y to 0. A pixel has `stride` numbers in memory; those after its
/// last real channel are padding, and other kernels require them to be 0. Their input is 0, which a
/// tempered sigmoid may map to another number.
void clear_padding(const ActivationForward& a) {
  for (int y = 0; y < a.out.height; ++y)
    for (int x = 0; x < a.out.width; ++x)
      for (int c = a.out.channels; c < a.out.stride; ++c) a.y[a.out.at(y, x) + c] = 0.0f;
}

}  // namespace

void activation_forward(const ActivationForward& a) {
  switch (a.function.kind) {
    case Activation::relu:
      return forward(a, Relu());
    case Activation::tanh:
      return forward(a, Tanh());
    case Activation::tempered_sigmoid:
      break;
  }
  forward(a, tempered(a.function));
  clear_padding(a);
}

void activation_backward(const ActivationBackward& a) {
  switch (a.function.kind) {
    case Activation::relu:
      return backward(a, Relu());
    case Activation::tanh:
      return backward(a, Tanh());
    case Activation::tempered_sigmoid:
      return backward(a, tempered(a.function));
  }
}

}  // namespace cudp::CUDP_SIMD
