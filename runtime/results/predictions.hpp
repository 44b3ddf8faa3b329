#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Outputs (logits) of a network for examples, together with the examples' labels or targets.
struct Predictions {
  Loss loss = Loss::softmax_cross_entropy;  ///< loss of the network
  int outputs = 1;
  std::vector<float> logits;         ///< [examples, outputs]
  std::vector<std::uint8_t> labels;  ///< [examples]
  /// Number to predict for each example, [examples], scaled to [-1, 1]; empty unless the model is a
  /// regression.
  std::vector<float> targets = {};
  float huber = 1.0f;  ///< threshold of the Huber loss, as in ModelSpec::huber

  std::size_t size() const { return labels.size(); }
};

/// Returns the network's loss for each example, [examples].
std::vector<double> losses(const Predictions& predictions);

/// Returns whether logits can be converted to probabilities: for softmax and logistic loss, but not
/// for hinge loss and regression losses.
bool gives_probabilities(Loss loss);

/// Returns the class of the largest logit, the first one of several equal ones. For a single logit,
/// returns class 1 if it is above 0, else class 0. Returns -1 if a logit is NaN, or too large for
/// softmax. logits: outputs of the network for one example; a single one with logistic and hinge
/// loss.
int predicted_class(Loss loss, std::span<const float> logits);

/// Returns whether probability >= threshold, compared as float32. Probabilities are written to
/// files as float32, so a threshold that a user copies from such a file is reached by the row with
/// exactly this probability.
inline bool reaches(float probability, double threshold) {
  return probability >= static_cast<float>(threshold);
}

/// Returns the class predicted with a threshold: the second of two classes if its probability
/// reaches the threshold, else the first. Without a threshold, returns predicted_class(loss,
/// logits). Returns -1 if predicted_class(loss, logits) is -1. A threshold requires a loss that
/// gives probabilities of two classes.
int predicted_class(Loss loss, std::span<const float> logits, std::optional<double> threshold);

/// Throws InputError unless a threshold on the probability of the second class is meaningful: the
/// network must predict two classes, with a loss that gives probabilities. flag: option with which
/// the user set the threshold, for the message.
void check_threshold(const std::string& flag, Loss loss, int outputs);

/// Computes the probability of each class, by softmax, or by the logistic function if there is a
/// single logit. All are NaN if a logit is NaN, or too large for softmax. logits: outputs of the
/// network for one example. probabilities: receives the result, [classes]. Requires a loss that
/// gives probabilities.
void class_probabilities(Loss loss, std::span<const float> logits, std::span<float> probabilities);

}  // namespace cudp
