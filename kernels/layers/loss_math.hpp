#pragma once
// Losses of one example and their gradients by its logits, on host and device alike.
#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/layers/activation_math.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

// A NaN or infinite logit shows in the loss or the gradient.

/// Cross-entropy of softmax(z): -log softmax(z)[label]; its gradient is softmax(z) - onehot(label).
/// z, d [classes]; d may be null or z itself. 0 <= label < classes.
CUDP_HD float softmax_cross_entropy(const float* z, int classes, int label, float* d) {
  float top = z[0];
  for (int c = 1; c < classes; ++c)
    if (z[c] > top) top = z[c];
  const float at_label = z[label] - top;
  float total = 0.0f;
  float others = 0.0f;  // all but the label's: softmax - 1 there, without its cancellation
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

/// log(1 + exp(-y z)) with y = 2 label - 1, label 0 or 1; d receives the gradient by z if not null.
CUDP_HD float logistic_loss(float z, int label, float* d) {
  const float y = label != 0 ? 1.0f : -1.0f;
  const float e = exp_of(-magnitude(z));  // in (0, 1]
  const float margin = y * z;
  if (d != nullptr) *d = -y * ((margin < 0.0f ? 1.0f : e) / (1.0f + e));
  return (margin < 0.0f ? -margin : 0.0f) + log1pf(e);
}

/// max(0, 1 - y z); the subgradient at the corner is 0.
CUDP_HD float hinge_loss(float z, int label, float* d) {
  const float y = label != 0 ? 1.0f : -1.0f;
  const float slack = 1.0f - y * z;
  if (d != nullptr) *d = slack > 0.0f ? -y : slack * 0.0f;  // NaN stays NaN
  return 0.0f > slack ? 0.0f : slack;
}

/// Any of them; logits and d [outputs], one output for logistic and hinge.
CUDP_HD float evaluate_loss(Loss loss, const float* logits, int outputs, int label, float* d) {
  if (loss == Loss::softmax_cross_entropy) return softmax_cross_entropy(logits, outputs, label, d);
  if (loss == Loss::logistic) return logistic_loss(logits[0], label, d);
  return hinge_loss(logits[0], label, d);
}

}  // namespace cudp
