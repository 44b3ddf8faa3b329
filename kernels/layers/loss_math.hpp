#pragma once
// Losses of one example and their gradients with respect to its logits, on host and device.
#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/layers/activation_math.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

// In all losses below, a NaN or infinite logit makes the loss or the gradient non-finite.

/// Returns the softmax cross-entropy of logits z, -log softmax(z)[label], and writes its gradient
/// with respect to z to d: softmax(z) - onehot(label). z and d have `classes` elements. If d is
/// null, no gradient is written; d may be z itself. Requires 0 <= label < classes.
CUDP_HD float softmax_cross_entropy(const float* z, int classes, int label, float* d) {
  float top = z[0];
  for (int c = 1; c < classes; ++c)
    if (z[c] > top) top = z[c];
  const float at_label = z[label] - top;
  float total = 0.0f;
  float others =
      0.0f;  // sum over the other classes: softmax - 1 is computed from it without cancellation
  for (int c = 0; c < classes; ++c) {
    const float e = exp_of(z[c] - top);
    total += e;
    if (c != label) others += e;
  }
  if (d != nullptr) {
    const float inverse = 1.0f / total;
    for (int c = 0; c < classes; ++c) d[c] = (c == label ? -others : exp_of(z[c] - top)) * inverse;
  }
  return logf(total) - at_label;
}

/// Returns the derivative of the logistic loss log(1 + exp(-y z)) with respect to the score z. y:
/// class, -1 or 1. V: float, or a SIMD vector with one example per lane. NaN gives NaN.
template <class V>
CUDP_HD V logistic_derivative(V z, V y) {
  const V one = V{} + 1.0f;
  const V e = exp_of(-magnitude(z));  // in (0, 1]
  return -y * ((y * z < V{} ? one : e) / (one + e));
}
/// Returns the derivative of the hinge loss max(0, 1 - y z) with respect to the score z. y: class,
/// -1 or 1. V: float, or a SIMD vector with one example per lane. NaN gives NaN.
template <class V>
CUDP_HD V hinge_derivative(V z, V y) {
  const V slack = (V{} + 1.0f) - y * z;
  return slack > V{} ? -y : slack * 0.0f;  // the subgradient at the corner is 0
}

/// Returns log(1 + e) for 0 <= e <= 1, computed as 2 atanh(e / (2 + e)), correct to 2 ulp
/// (distances between neighbouring floats). V: float or a SIMD vector of floats.
template <class V>
CUDP_HD V log1p_of_part(V e) {
  const V t = e / (e + 2.0f);
  const V s = t * t;  // at most 1/9
  V sum = s * (2.0f / 15.0f) + 2.0f / 13.0f;
  sum = sum * s + 2.0f / 11.0f;
  sum = sum * s + 2.0f / 9.0f;
  sum = sum * s + 2.0f / 7.0f;
  sum = sum * s + 2.0f / 5.0f;
  sum = sum * s + 2.0f / 3.0f;
  return sum * s * t + t * 2.0f;
}
/// Returns the logistic loss log(1 + exp(-y z)) of the score z. y: class, -1 or 1. V: float, or a
/// SIMD vector with one example per lane.
template <class V>
CUDP_HD V logistic_value(V z, V y) {
  const V margin = y * z;
  return (margin < V{} ? -margin : V{}) + log1p_of_part(exp_of(-magnitude(z)));
}
/// Returns the hinge loss max(0, 1 - y z) of the score z. y: class, -1 or 1. V: float, or a SIMD
/// vector with one example per lane.
template <class V>
CUDP_HD V hinge_value(V z, V y) {
  const V slack = (V{} + 1.0f) - y * z;
  return V{} > slack ? V{} : slack;
}

/// Returns the logistic loss log(1 + exp(-y z)) with y = 2 label - 1, label 0 or 1. Unless d is
/// null, writes the derivative with respect to z to *d.
CUDP_HD float logistic_loss(float z, int label, float* d) {
  const float y = label != 0 ? 1.0f : -1.0f;
  const float e = exp_of(-magnitude(z));  // in (0, 1]
  const float margin = y * z;
  if (d != nullptr) *d = logistic_derivative(z, y);
  return (margin < 0.0f ? -margin : 0.0f) + log1pf(e);
}

/// Returns the hinge loss max(0, 1 - y z) with y = 2 label - 1, label 0 or 1. Unless d is null,
/// writes the derivative with respect to z to *d.
CUDP_HD float hinge_loss(float z, int label, float* d) {
  const float y = label != 0 ? 1.0f : -1.0f;
  const float slack = 1.0f - y * z;
  if (d != nullptr) *d = hinge_derivative(z, y);
  return 0.0f > slack ? 0.0f : slack;
}

/// Returns the derivative, with respect to the output z, of the squared or the Huber loss; t is the
/// target. h: |z - t| from which on the Huber loss is linear. V: float, or a SIMD vector with one
/// example per lane. NaN gives NaN.
template <class V>
CUDP_HD V target_derivative(Loss loss, V z, V t, float h) {
  const V r = z - t;
  if (loss == Loss::squared) return r;
  const V bound = V{} + h;
  const V above = r < -bound ? -bound : r;
  return above > bound ? bound : above;
}
/// Returns the squared loss r^2 / 2, or the Huber loss: r^2 / 2 if r <= h, and (r - h / 2) h if r >
/// h. Here r = |z - t|, with the output z and the target t. V: float, or a SIMD vector with one
/// example per lane.
template <class V>
CUDP_HD V target_value(Loss loss, V z, V t, float h) {
  const V r = magnitude(z - t);
  const V square = r * r * 0.5f;
  if (loss == Loss::squared) return square;
  return r > V{} + h ? (r - 0.5f * h) * h : square;
}

/// Returns the squared loss r^2 / 2, or the Huber loss: r^2 / 2 if r <= h, and (r - h / 2) h if r >
/// h. Here r = |z - target|, with the output z. Unless d is null, writes the derivative with
/// respect to z to *d.
CUDP_HD float target_loss(Loss loss, float z, float target, float h, float* d) {
  if (d != nullptr) *d = target_derivative(loss, z, target, h);
  return target_value(loss, z, target, h);
}

/// Returns the loss of one example with a class label, and writes its gradient with respect to the
/// logits to d, unless d is null. logits and d have `outputs` elements; outputs is 1 for the
/// logistic and the hinge loss.
CUDP_HD float evaluate_loss(Loss loss, const float* logits, int outputs, int label, float* d) {
  if (loss == Loss::softmax_cross_entropy) return softmax_cross_entropy(logits, outputs, label, d);
  if (loss == Loss::logistic) return logistic_loss(logits[0], label, d);
  return hinge_loss(logits[0], label, d);
}

}  // namespace cudp
