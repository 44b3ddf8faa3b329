#include "runtime/results/predictor.hpp"

namespace cudp {

EngineSettings forward_settings(const TrainConfig& config) {
  EngineSettings s;
  s.micro_batch = static_cast<int>(config.micro_batch);
  s.precision = config.precision;
  s.evaluate_with = config.evaluate_with;
  s.threads = static_cast<int>(config.threads);
  return s;
}

Predictor::Predictor(const Backend& backend, const Network& network, const EngineSettings& settings)
    : loss_(network.spec.loss),
      huber_(network.spec.huber),
      outputs_(network.outputs),
      engine_(backend.make_engine(network, settings)) {}

void Predictor::set_parameters(std::span<const float> parameters) {
  TrainState state;
  state.parameters.assign(parameters.begin(), parameters.end());
  engine_->set_state(state);
}

std::vector<float> Predictor::logits(const Dataset& examples) { return engine_->logits(examples); }

Predictions Predictor::predict(std::span<const float> parameters, const Dataset& examples) {
  set_parameters(parameters);
  return {.loss = loss_,
          .outputs = outputs_,
          .logits = logits(examples),
          .labels = examples.labels,
          .targets = copy_of(examples.targets),
          .huber = huber_};
}

}  // namespace cudp
