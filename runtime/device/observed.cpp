#include "runtime/device/observed.hpp"

#include <string>

#include "runtime/config/choices.hpp"

namespace cudp {

ReleasedValue released_sum(std::uint64_t step, double grid, float noise_std) {
  return {.name = "sum of clipped gradients",
          .purpose = Stream::noise,
          .step = step,
          .grid = grid,
          .noise_std = static_cast<double>(noise_std)};
}

void show_batch(ReleaseObserver* release_observer, std::uint64_t step, const Draw& draw,
                std::span<const std::uint32_t> examples) {
  SecretObserver* const o = observer(release_observer);
  if (o == nullptr) return;
  const auto* const poisson = std::get_if<Poisson>(&draw);
  const auto* const allocation = std::get_if<Allocation>(&draw);
  o->on_record(transcript::Batch{.step = step,
                                 .threshold = poisson != nullptr ? poisson->threshold : 0,
                                 .epoch_steps = allocation != nullptr ? allocation->steps : 0,
                                 .examples = {examples.begin(), examples.end()}});
}

transcript::Update update_record(std::uint64_t step, const StepRecipe& recipe,
                                 const StepScalars& scalars, const TrainState& state) {
  const OptimizerSettings& o = recipe.optimizer;
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
          .ema_decay = o.keep_average ? exact(scalars.ema_decay) : 0.0,
          .coordinates = std::holds_alternative<TransformedGradient>(recipe.contribution),
          .parameters = state.parameters,
          .moment1 = state.moment1,
          .moment2 = state.moment2,
          .average = state.average,
          .lr_scale = {}};
}

}  // namespace cudp
