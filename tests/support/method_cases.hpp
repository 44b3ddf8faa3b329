#pragma once
// Methods of a config, as a run makes them.
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"

namespace cudp::cases {

inline MethodContext context_of(const TrainConfig& config, const Network& network,
                                const TrainingSize& size,
                                const Arithmetic& arithmetic = kCpuArithmetic) {
  return {.config = config,
          .network = network,
          .size = size,
          .arithmetic = arithmetic,
          .before = releases_before(config, size)};
}

/// The same for tests that bring a plan of their own: so many steps make an epoch.
inline MethodContext context_of(const TrainConfig& config, const Network& network,
                                std::uint64_t steps_per_epoch) {
  const auto batch = static_cast<double>(config.batch);
  return context_of(config, network,
                    TrainingSize{batch * static_cast<double>(steps_per_epoch), 0.0});
}

/// The plan that the config's method trains by.
inline PrivacyPlan plan_of(const TrainConfig& config, const Network& network,
                           const TrainingSize& size,
                           const Arithmetic& arithmetic = kCpuArithmetic) {
  const auto method =
      method_entry(config.method).make(context_of(config, network, size, arithmetic));
  return dynamic_cast<const EngineMethod&>(*method).plan();
}

}  // namespace cudp::cases
