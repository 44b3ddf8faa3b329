#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// The settings that count where a model is only asked for its answers: precision, threads and
/// micro_batch.
EngineSettings forward_settings(const TrainConfig& config);

/// Gives a model's predictions, whatever trained it. It has an engine of its own, which it only
/// asks for logits.
class Predictor {
 public:
  /// settings: see forward_settings.
  Predictor(const Backend& backend, const Network& network, const EngineSettings& settings);

  /// The parameters [d] of the network that logits() goes by.
  void set_parameters(std::span<const float> parameters);
  /// The logits of examples, [examples, outputs]: the one place where a released model, linear or
  /// not, is asked. Throws where the examples do not fit the network.
  std::vector<float> logits(const Dataset& examples);

  /// Both at once, with the examples' labels.
  Predictions predict(std::span<const float> parameters, const Dataset& examples);

 private:
  Loss loss_;
  float huber_;
  int outputs_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace cudp
