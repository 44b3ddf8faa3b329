#include "runtime/train/in_memory.hpp"

#include <utility>

#include "runtime/error.hpp"
#include "runtime/features/pca.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/random_key.hpp"
#include "runtime/train/experiment.hpp"
#include "runtime/train/initial_state.hpp"
#include "runtime/train/make_plan.hpp"

namespace cudp {

TrainedInMemory train_in_memory(const TrainConfig& config, const DataSplit& data) {
  ensure(config.seed.has_value(), "a run in memory is seeded");
  Experiment e = on_data(config, choose_backend(Device::cpu), data, read_model(config.model));
  const SecretKey key(key_from_seed(static_cast<std::uint64_t>(*config.seed)));
  const TrainingSize size = training_size(e.data, e.config, key.key());
  const PrivacyPlan plan = make_plan(e.config, e.network, size, e.backend.arithmetic(e.network));
  if (plan.feature_noise > 0.0) show_projected(e, released_projection(e, plan, key.key()));
  const auto engine = make_engine(e, plan, size, key.key());
  engine->set_state(initial_state(e, key.key()));
  DpisEpoch unused;
  const auto method = make_method({.config = e.config,
                                   .plan = plan,
                                   .size = size.value,
                                   .steps_per_epoch = size.steps_per_epoch(e.config.batch),
                                   .network = e.network,
                                   .arithmetic = e.backend.arithmetic(e.network)},
                                  unused);
  ensure(method->prepared_until(0) == plan.steps, "a run in memory has a method that is planned");
  method->run(*engine, 0, plan.steps);
  return {engine->evaluate(e.data.test, false).value(), plan};
}

}  // namespace cudp
