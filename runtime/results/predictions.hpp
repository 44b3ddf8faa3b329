#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// The answers of a model to labelled examples, as an engine gives them.
struct Predictions {
  Loss loss = Loss::softmax_cross_entropy;  ///< of the network
  int outputs = 1;
  std::vector<float> logits;         ///< [examples, outputs]
  std::vector<std::uint8_t> labels;  ///< [examples]
  std::vector<float> targets = {};   ///< [examples], scaled, where the loss has a target
  float huber = 1.0f;                ///< ModelSpec::huber

  std::size_t size() const { return labels.size(); }
};

/// The loss of each example, [examples].
std::vector<double> losses(const Predictions& predictions);

/// Whether the loss makes probabilities of logits: softmax and logistic do, hinge and those of a
/// target do not.
bool gives_probabilities(Loss loss);

/// The class of the largest logit, of equal ones the first; of a single logit the second class
/// where it is above 0, else the first. -1 where logits are NaN, or too large for softmax.
/// logits [outputs], 1 of logistic and hinge.
int predicted_class(Loss loss, std::span<const float> logits);

/// Whether a probability reaches a threshold. Both are float32 numbers, as they are written and
/// typed: a threshold that was read from a file of predictions lets its own row through.
inline bool reaches(float probability, double threshold) {
  return probability >= static_cast<float>(threshold);
}

/// The class predicted by a threshold: of two classes the second if its probability reaches it. -1
/// where predicted_class is. Without a threshold predicted_class itself. The loss gives
/// probabilities of two classes.
int predicted_class(Loss loss, std::span<const float> logits, std::optional<double> threshold);

/// Throws InputError "FLAG: expected ..., found ..." unless a threshold has a meaning: there are
/// two classes, and the loss gives probabilities.
void check_threshold(const std::string& flag, Loss loss, int outputs);

/// The probability of each class, by softmax, or by the logistic function of the single logit; NaN
/// where predicted_class is -1. logits [outputs], probabilities [classes], written. The loss gives
/// probabilities.
void class_probabilities(Loss loss, std::span<const float> logits, std::span<float> probabilities);

}  // namespace cudp
