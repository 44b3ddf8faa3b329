#pragma once
// Cells of recurrent layers, of one unit or of a vector of them (see activation_math.hpp for V).
#include "kernels/common/host_device.hpp"
#include "kernels/layers/activation_math.hpp"

namespace cudp {

template <class V>
CUDP_HD V sigmoid_of(V x) {
  const V one = V{} + 1.0f;
  return one / (one + exp_of(-x));
}

/// Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000.
template <class V>
struct LstmUnit {
  V i, f, g, o;

  /// Replaces the gates' pre-activations by their values.
  CUDP_HD void activate() {
    i = sigmoid_of(i);
    f = sigmoid_of(f);
    g = tanh_of(g);
    o = sigmoid_of(o);
  }
  CUDP_HD V state(V c_before) const { return f * c_before + i * g; }
  /// Returns h, given tanh c.
  CUDP_HD V output(V c_tanh) const { return o * c_tanh; }

  /// Takes dh = dL/dh_t, replaces dc = dL/dc_t by dL/dc_{t-1}, and the gates' values by the
  /// gradients of their pre-activations.
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

/// Cho et al. 2014, as cuDNN and PyTorch have it: n = tanh(W_n x + b_n + r (U_n h + b'_n)).
template <class V>
struct GruUnit {
  V n, r, z, product;  ///< product: U_n h + b'_n

  /// Replaces the gates' pre-activations by their values.
  CUDP_HD void activate() {
    r = sigmoid_of(r);
    z = sigmoid_of(z);
    n = tanh_of(n + r * product);
  }
  CUDP_HD V state(V h_before) const {
    const V one = V{} + 1.0f;
    return (one - z) * n + z * h_before;
  }

  /// Replaces dh = dL/dh_t by the part of dL/dh_{t-1} that passes the gates, z dh, and the gates'
  /// values by the gradients of their pre-activations.
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
