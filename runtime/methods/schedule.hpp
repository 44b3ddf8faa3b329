#pragma once
#include <cstdint>

#include "kernels/step/recipe.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

OptimizerSettings optimizer_settings(const TrainConfig& config);

/// The smallest float that is not below x: rounding must not take noise away.
float float_above(double x);

/// The largest float that is not above x: an example may not add more than what is proved.
float float_below(double x);

/// The learning rate of a step, of `steps`, counted from 0. For ScheduleKind::adaptive the number
/// that the engine divides by b_t.
double learning_rate(const TrainConfig& config, std::uint64_t steps, std::uint64_t steps_per_epoch,
                     std::uint64_t step);

/// The numbers of every step, known before training starts: learning rate, noise, bias corrections,
/// averaging, clipping norm.
class Schedule {
 public:
  Schedule(const TrainConfig& config, const PrivacyPlan& plan, std::uint64_t steps_per_epoch);

  /// step counts from 0.
  double learning_rate(std::uint64_t step) const;
  StepScalars at(std::uint64_t step) const;

 private:
  TrainConfig config_;
  PrivacyPlan plan_;
  std::uint64_t steps_per_epoch_;
};

}  // namespace cudp
