#pragma once
// Cells of recurrent layers: formulas of one step, for one unit (V = float) or a SIMD vector of
// units.
#include "kernels/common/host_device.hpp"
#include "kernels/layers/activation_math.hpp"

namespace cudp {

template <class V>
CUDP_HD V sigmoid_of(V x) {
  const V one = V{} + 1.0f;
  return one / (one + exp_of(-x));
}

/// One unit of an LSTM (Hochreiter & Schmidhuber 1997) with the forget gate of Gers et al. 2000. i,
/// f, g, o are its gates: first their pre-activations, then, after activate(), their values. V:
/// float or a SIMD vector of floats, one unit per lane.
template <class V>
struct LstmUnit {
  V i, f, g, o;

  /// Replaces the pre-activations of the gates i, f, g and o with their values.
  CUDP_HD void activate() {
    i = sigmoid_of(i);
    f = sigmoid_of(f);
    g = tanh_of(g);
    o = sigmoid_of(o);
  }
  CUDP_HD V state(V c_before) const { return f * c_before + i * g; }
  /// Returns the unit's output h = o tanh c, with c its cell state. c_tanh: tanh c.
  CUDP_HD V output(V c_tanh) const { return o * c_tanh; }

  /// Backward pass of step t; L is the loss, c_t the cell state. dh = dL/dh_t. Replaces dc =
  /// dL/dc_t with dL/dc_{t-1}, and the values of the gates i, f, g and o with the gradients of
  /// their pre-activations. c_before: c_{t-1}. c_tanh: tanh c_t.
  CUDP_HD void backward(V dh, V& dc, V c_before, V c_tanh) {
    const V one = V{} + 1.0f;
    const V d = dc + dh * o * (one - c_tanh * c_tanh);
    dc = d * f;
    const V di = d * g * (i * (one - i));
    const V df = d * c_before * (f * (one - f));
    g = d * i * (one - g * g);
    o = dh * c_tanh * (o * (one - o));
    i = di;
    f = df;
  }
};

/// One unit of a GRU (Cho et al. 2014) in the form that cuDNN and PyTorch use, with n = tanh(W_n x
/// + b_n + r (U_n h + b'_n)). r and z are its gates: first their pre-activations, then, after
/// activate(), their values. n is first W_n x + b_n, then, after activate(), the value n. V: float
/// or a SIMD vector of floats, one unit per lane.
template <class V>
struct GruUnit {
  V n, r, z, product;  ///< the part of n that comes from the previous state: U_n h + b'_n

  /// Replaces the pre-activations of r and z with their values, and W_n x + b_n with the value n.
  CUDP_HD void activate() {
    r = sigmoid_of(r);
    z = sigmoid_of(z);
    n = tanh_of(n + r * product);
  }
  CUDP_HD V state(V h_before) const {
    const V one = V{} + 1.0f;
    return (one - z) * n + z * h_before;
  }

  /// Backward pass of step t; L is the loss. Replaces dh = dL/dh_t with z dh, the part of
  /// dL/dh_{t-1} that bypasses the gates. Replaces the values of r and z with the gradients of
  /// their pre-activations, n with the gradient of W_n x, and `product` with the gradient of U_n h.
  /// h_before: h_{t-1}, the unit's state before the step.
  CUDP_HD void backward(V& dh, V h_before) {
    const V one = V{} + 1.0f;
    const V dn = dh * (one - z) * (one - n * n);
    const V dz = dh * (h_before - n) * (z * (one - z));
    const V dr = dn * product * (r * (one - r));
    dh = dh * z;
    product = dn * r;
    n = dn;
    r = dr;
    z = dz;
  }
};

}  // namespace cudp
