#include "runtime/results/predictions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"

namespace cudp {

std::vector<double> losses(const Predictions& p) {
  const auto outputs = static_cast<std::size_t>(p.outputs);
  std::vector<double> all;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const float* const logits = p.logits.data() + i * outputs;
    all.push_back(static_cast<double>(
        has_target(p.loss) ? target_loss(p.loss, logits[0], p.targets[i], p.huber, nullptr)
                           : evaluate_loss(p.loss, logits, p.outputs, p.labels[i], nullptr)));
  }
  return all;
}

bool gives_probabilities(Loss loss) {
  return loss == Loss::softmax_cross_entropy || loss == Loss::logistic;
}

int predicted_class(Loss loss, std::span<const float> logits) {
  if (loss != Loss::softmax_cross_entropy) {
    if (std::isnan(logits[0])) return -1;
    return logits[0] > 0.0f ? 1 : 0;
  }
  if (std::ranges::any_of(logits, [](float z) { return std::isnan(z); })) return -1;
  const auto top = std::ranges::max_element(logits);
  return std::isfinite(*top) ? static_cast<int>(top - logits.begin()) : -1;
}

int predicted_class(Loss loss, std::span<const float> logits, std::optional<double> threshold) {
  const int likelier = predicted_class(loss, logits);
  if (!threshold || likelier < 0) return likelier;
  std::array<float, 2> probabilities{};
  class_probabilities(loss, logits, probabilities);
  return reaches(probabilities[1], *threshold) ? 1 : 0;
}

void check_threshold(const std::string& flag, Loss loss, int outputs) {
  if (has_target(loss))
    throw InputError(flag + ": expected a model of two classes, found one that predicts a target");
  const int classes = outputs == 1 ? 2 : outputs;
  if (classes != 2)
    throw InputError(flag + ": expected a model of two classes, found one of " +
                     std::to_string(classes));
  if (!gives_probabilities(loss))
    throw InputError(flag +
                     ": expected a model that gives probabilities, found one whose loss is hinge");
}

void class_probabilities(Loss loss, std::span<const float> logits, std::span<float> probabilities) {
  if (loss != Loss::softmax_cross_entropy) {
    const auto z = static_cast<double>(logits[0]);
    const double e = std::exp(-std::fabs(z));  // computes both without cancellation
    const double large = 1.0 / (1.0 + e);
    const double small = e / (1.0 + e);
    probabilities[0] = static_cast<float>(z > 0.0 ? small : large);
    probabilities[1] = static_cast<float>(z > 0.0 ? large : small);
    return;
  }
  const int best = predicted_class(loss, logits);
  if (best < 0) {
    std::ranges::fill(probabilities, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const auto top = static_cast<double>(logits[static_cast<std::size_t>(best)]);
  double total = 0.0;
  for (const float z : logits) total += std::exp(static_cast<double>(z) - top);
  for (std::size_t c = 0; c < logits.size(); ++c)
    probabilities[c] = static_cast<float>(std::exp(static_cast<double>(logits[c]) - top) / total);
}

}  // namespace cudp
