#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Outputs of a model for labelled examples, as an engine returns them.
struct Predictions {
  Loss loss = Loss::softmax_cross_entropy;  ///< loss of the network
  int outputs = 1;
  std::vector<float> logits;         ///< [examples, outputs]
  std::vector<std::uint8_t> labels;  ///< [examples]
  std::vector<float> targets = {};   ///< [examples], scaled; empty unless the loss has a target
  float huber = 1.0f;                ///< ModelSpec::huber

  std::size_t size() const { return labels.size(); }
};

/// Returns the loss of each example, [examples].
std::vector<double> losses(const Predictions& predictions);

/// Returns whether the loss turns logits into probabilities. Softmax and logistic do; hinge and the
/// losses of targets do not.
bool gives_probabilities(Loss loss);

/// Returns the class of the largest logit, the first one of several equal ones. For a single logit,
/// returns class 1 if it is above 0, else class 0. Returns -1 if a logit is NaN, or too large for
/// softmax. logits: [outputs], one for logistic and hinge.
int predicted_class(Loss loss, std::span<const float> logits);

/// Returns whether a probability reaches a threshold. It compares them as float32, the type of
/// written probabilities, so that a row reaches a threshold equal to its own written probability.
inline bool reaches(float probability, double threshold) {
  return probability >= static_cast<float>(threshold);
}

/// Returns the class predicted with a threshold: the second of two classes if its probability
/// reaches it. Without a threshold, returns predicted_class(loss, logits). Returns -1 if that does.
/// Requires a loss that gives probabilities of two classes if there is a threshold.
int predicted_class(Loss loss, std::span<const float> logits, std::optional<double> threshold);

/// Throws InputError "FLAG: expected ..., found ..." unless a threshold is meaningful: two classes,
/// and a loss that gives probabilities.
void check_threshold(const std::string& flag, Loss loss, int outputs);

/// Computes the probability of each class, by softmax or by the logistic function of the single
/// logit. They are NaN if predicted_class() is -1. logits: [outputs]. probabilities: [classes],
/// written. Requires a loss that gives probabilities.
void class_probabilities(Loss loss, std::span<const float> logits, std::span<float> probabilities);

}  // namespace cudp
