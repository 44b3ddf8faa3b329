#pragma once
#include "kernels/activation.hpp"
#include "kernels/lanes.hpp"

namespace cudp {

/// tanh(x) within 3e-7 relative, |result| < 1: x times a quotient of polynomials in x^2, fitted on
/// |x| <= 7.9 to 1.5e-9; beyond that tanh is 1 to within 3e-7.
template <class L>
CUDP_HD typename L::F tanh_of(typename L::F x) {
  using F = typename L::F;
  const F bound = L::fill(7.9f);
  x = x > bound ? bound : x;
  x = x < -bound ? -bound : x;
  const F u = x * x;
  const F p =
      polynomial<L>(u, 1.0f, 0x1.0cdd2cp-3f, 0x1.9d5a84p-9f, 0x1.883b4cp-17f, -0x1.82fa16p-26f,
                    0x1.1d1b82p-34f, -0x1.0c7feap-43f);
  const F q = polynomial<L>(u, 1.0f, 0x1.dbc3eap-2f, 0x1.948d1cp-6f, 0x1.12a7c0p-12f);
  return x * p / q;
}

/// The logistic function 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2.
template <class L>
CUDP_HD typename L::F logistic_of(typename L::F x) {
  return L::fma(tanh_of<L>(x * 0.5f), L::fill(0.5f), L::fill(0.5f));
}

template <class L, Activation kind>
CUDP_HD typename L::F activate(const Activate& f, typename L::F x) {
  using F = typename L::F;
  if constexpr (kind == Activation::relu) {
    const F zero = L::fill(0.0f);
    return x > zero ? x : zero;
  } else if constexpr (kind == Activation::tanh) {
    return tanh_of<L>(x);
  } else {
    return L::fma(logistic_of<L>(x * f.temperature), L::fill(f.scale), L::fill(-f.offset));
  }
}

/// f'(x) from y = f(x).
template <class L, Activation kind>
CUDP_HD typename L::F activation_slope(const Activate& f, typename L::F y) {
  using F = typename L::F;
  if constexpr (kind == Activation::relu) {
    const F zero = L::fill(0.0f);
    return y > zero ? L::fill(1.0f) : zero;
  } else if constexpr (kind == Activation::tanh) {
    return L::fma(-y, y, L::fill(1.0f));
  } else {
    // y = s p - o with p the logistic function: f' = t s p (1 - p).
    const F p = (y + f.offset) * (1.0f / f.scale);
    return (p - p * p) * (f.scale * f.temperature);
  }
}

}  // namespace cudp
