#include "runtime/device/observed.hpp"

#include <string>

#include "runtime/config/choices.hpp"

namespace cudp {

Leaving released_sum(std::uint64_t step, double grid, float noise_std) {
  return {.name = "sum of clipped gradients",
          .purpose = Stream::noise,
          .step = step,
          .grid = grid,
          .noise_std = static_cast<double>(noise_std)};
}

void show_batch(std::uint64_t step, std::uint64_t threshold,
                std::span<const std::uint32_t> examples) {
  if (Observer* const o = observer())
    o->sees(verify::Batch{
        .step = step, .threshold = threshold, .examples = {examples.begin(), examples.end()}});
}

verify::Update update_record(std::uint64_t step, const EngineSettings& settings,
                             const StepScalars& scalars, bool coordinates,
                             const TrainState& state) {
  const OptimizerSettings& o = settings.optimizer;
  const auto exact = [](float x) { return static_cast<double>(x); };
  return {.step = step,
          .optimizer = std::string(choice_name<OptimizerKind>(kOptimizers, o.kind)),
          .momentum = exact(o.momentum),
          .beta1 = exact(o.beta1),
          .beta2 = exact(o.beta2),
          .epsilon = exact(o.epsilon),
          .weight_decay = exact(o.weight_decay),
          .learning_rate = exact(scalars.learning_rate),
          .inverse_batch = exact(scalars.inverse_batch),
          .bias1 = exact(scalars.bias1),
          .bias2 = exact(scalars.bias2),
          .ema_decay = settings.keep_average ? exact(scalars.ema_decay) : 0.0,
          .coordinates = coordinates,
          .parameters = state.parameters,
          .moment1 = state.moment1,
          .moment2 = state.moment2,
          .average = state.average};
}

}  // namespace cudp
