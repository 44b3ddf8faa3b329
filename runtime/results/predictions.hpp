#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Outputs of a network for labelled examples.
struct Predictions {
  Loss loss = Loss::softmax_cross_entropy;  ///< loss of the network
  int outputs = 1;
  std::vector<float> logits;         ///< [examples, outputs]
  std::vector<std::uint8_t> labels;  ///< [examples]
  /// Target of each example, [examples], scaled to [-1, 1]; empty unless the model is a regression.
  std::vector<float> targets = {};
  float huber = 1.0f;  ///< threshold of the Huber loss, as in ModelSpec::huber

  std::size_t size() const { return labels.size(); }
};

/// Returns the loss of each example, [examples].
std::vector<double> losses(const Predictions& predictions);

/// Returns whether logits can be converted to probabilities: for softmax and logistic loss, but not
/// for hinge loss and regression losses.
bool gives_probabilities(Loss loss);

/// Returns the class of the largest logit, the first one of several equal ones. For a single logit,
/// returns class 1 if it is above 0, else class 0. Returns -1 if a logit is NaN, or too large for
/// softmax. logits: [outputs], one for logistic and hinge.
int predicted_class(Loss loss, std::span<const float> logits);

/// Returns whether probability >= threshold, compared as float32, the type of written
/// probabilities. So a row reaches a threshold equal to its own written probability.
inline bool reaches(float probability, double threshold) {
  return probability >= static_cast<float>(threshold);
}

/// Returns the class predicted with a threshold: the second of two classes if its probability
/// reaches the threshold, else the first. Without a threshold, returns predicted_class(loss,
/// logits). Returns -1 if predicted_class(loss, logits) is -1. A threshold requires a loss that
/// gives probabilities of two classes.
int predicted_class(Loss loss, std::span<const float> logits, std::optional<double> threshold);

/// Throws InputError "FLAG: expected ..., found ..." unless a threshold is meaningful: for two
/// classes, and a loss that gives probabilities. flag: option that set it.
void check_threshold(const std::string& flag, Loss loss, int outputs);

/// Computes the probability of each class, by softmax, or by the logistic function if there is a
/// single logit. All are NaN if predicted_class() is -1. logits: [outputs]. probabilities:
/// [classes], written. Requires a loss that gives probabilities.
void class_probabilities(Loss loss, std::span<const float> logits, std::span<float> probabilities);

}  // namespace cudp
