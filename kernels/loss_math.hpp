#pragma once
#include <cmath>

#include "kernels/host_device.hpp"
#include "kernels/loss.hpp"

namespace cudp {

/// One example's loss and its gradient with respect to the logits.
/// logits, gradient [outputs] (may be the same array; gradient may be null); label < classes.
CUDP_HD float loss_and_gradient(Loss loss, const float* logits, int outputs, int label,
                                float* gradient) {
  if (loss == Loss::softmax_cross_entropy) {
    float top = logits[0];
    for (int i = 1; i < outputs; ++i) top = fmaxf(top, logits[i]);
    float sum = 0.0f;
    for (int i = 0; i < outputs; ++i) sum += expf(logits[i] - top);
    const float value = logf(sum) + top - logits[label];
    if (gradient != nullptr)
      for (int i = 0; i < outputs; ++i)
        gradient[i] = expf(logits[i] - top) / sum - (i == label ? 1.0f : 0.0f);
    return value;
  }
  const float sign = label != 0 ? 1.0f : -1.0f;
  const float margin = sign * logits[0];
  if (loss == Loss::logistic) {
    // exp of a non-positive number only, so nothing overflows.
    const float e = expf(-fabsf(margin));
    if (gradient != nullptr) gradient[0] = -sign * (margin > 0.0f ? e : 1.0f) / (1.0f + e);
    return fmaxf(-margin, 0.0f) + log1pf(e);
  }
  if (gradient != nullptr) gradient[0] = margin < 1.0f ? -sign : 0.0f;
  return fmaxf(1.0f - margin, 0.0f);
}

/// The predicted class: the first largest logit; class 1 of two where the only logit is > 0.
CUDP_HD int predicted_class(const float* logits, int outputs) {
  if (outputs == 1) return logits[0] > 0.0f ? 1 : 0;
  int best = 0;
  for (int i = 1; i < outputs; ++i)
    if (logits[i] > logits[best]) best = i;
  return best;
}

}  // namespace cudp
