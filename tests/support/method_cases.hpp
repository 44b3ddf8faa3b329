#pragma once
// Functions that make the method of a config as a run does.
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"

namespace cudp::cases {

inline MethodContext context_of(const TrainConfig& config, const Network& network,
                                const TrainingSize& size,
                                const Arithmetic& arithmetic = kCpuArithmetic) {
  privacy::Ledger counted;
  if (!size.is_public() && !method_entry(config.method).counts_in_its_proof)
    counted.count_first(privacy::split_for_count(*config.epsilon, *config.delta, size.unit_rows));
  return method_context(config, network, size, arithmetic, counted);
}

/// Returns the context for tests that set a plan of their own, with this number of steps per epoch.
inline MethodContext context_of(const TrainConfig& config, const Network& network,
                                std::uint64_t steps_per_epoch) {
  const auto batch = static_cast<double>(config.batch);
  return context_of(config, network,
                    TrainingSize{batch * static_cast<double>(steps_per_epoch), 0.0});
}

/// Returns the plan of the config's method.
inline PrivacyPlan plan_of(const TrainConfig& config, const Network& network,
                           const TrainingSize& size,
                           const Arithmetic& arithmetic = kCpuArithmetic) {
  const auto method =
      method_entry(config.method).make(context_of(config, network, size, arithmetic));
  return dynamic_cast<const EngineMethod&>(*method).plan();
}

}  // namespace cudp::cases
