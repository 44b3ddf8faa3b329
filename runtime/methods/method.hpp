#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/config.hpp"
#include "runtime/engine.hpp"
#include "runtime/plan.hpp"
#include "runtime/schedule.hpp"

namespace cudp {

/// A training algorithm: what an engine is to do in a step.
class Method {
 public:
  virtual ~Method() = default;
  /// Steps first <= t < last.
  virtual void run(Engine& engine, std::uint64_t first, std::uint64_t last) const = 0;
};

std::unique_ptr<Method> make_method(const TrainConfig& config, const Schedule& schedule);

/// The noise of every step that the config's method asks for, as PrivacyPlan::noise has it.
std::vector<NoiseSpan> noise_over_time(const TrainConfig& config, std::uint64_t steps,
                                       std::uint64_t steps_per_epoch);

}  // namespace cudp
