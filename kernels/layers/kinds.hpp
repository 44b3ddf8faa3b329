#pragma once
// Kinds of activation functions and losses.

namespace cudp {

enum class Activation { relu, tanh, tempered_sigmoid };

/// An activation function f(x). relu: max(x, 0). tanh: tanh x. tempered_sigmoid: scale / (1 +
/// exp(-temperature x)) - offset (Papernot et al. 2021, eq. 1); only this kind uses scale,
/// temperature and offset.
struct Activate {
  Activation kind = Activation::relu;
  float scale = 2.0f;
  float temperature = 2.0f;
  float offset = 1.0f;
};

/// Returns whether the activation f is increasing, so that it and a max pool can be swapped without
/// changing the result.
constexpr bool increases(const Activate& f) {
  return f.kind != Activation::tempered_sigmoid || f.scale * f.temperature > 0.0f;
}

/// Kind of loss. softmax_cross_entropy: of the logits [classes] and a class label. logistic: of one
/// logit z and a label 0 or 1, log(1 + exp(-y z)) with y = 2 label - 1. hinge: of one logit z and a
/// label 0 or 1, max(0, 1 - y z) with the same y. squared and huber: of one output z and a target
/// t, with r = z - t. squared is r^2 / 2. huber equals squared if |r| <= h, otherwise h (|r| - h /
/// 2) (Huber 1964).
enum class Loss { softmax_cross_entropy, logistic, hinge, squared, huber };

/// Returns whether the loss compares the output with a number (the target) rather than with a
/// class.
constexpr bool has_target(Loss loss) { return loss == Loss::squared || loss == Loss::huber; }

}  // namespace cudp
