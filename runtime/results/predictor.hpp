#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Returns the settings for an engine that only computes a network's outputs (logits), without
/// gradients. They are taken from the config's settings precision, evaluate_with, threads and
/// micro_batch.
EngineSettings forward_settings(const TrainConfig& config);

/// Computes a network's outputs for examples, independently of the method that trained it. Owns an
/// engine (which runs the network's kernels on a device) that only computes logits.
class Predictor {
 public:
  /// Makes an engine for the network. settings: result of forward_settings().
  Predictor(const Backend& backend, const Network& network, const EngineSettings& settings);

  /// Sets the network's parameters, [number of parameters], with which logits() computes.
  void set_parameters(std::span<const float> parameters);
  /// Returns the logits of examples, [examples, outputs]. All predictions of released models,
  /// linear or not, are computed here. Throws an error if the examples' shape does not fit the
  /// network.
  std::vector<float> logits(const Dataset& examples);

  /// Sets the network's parameters, and returns the logits of the examples together with their
  /// labels or targets.
  Predictions predict(std::span<const float> parameters, const Dataset& examples);

 private:
  Loss loss_;
  float huber_;
  int outputs_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace cudp
