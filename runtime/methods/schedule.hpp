#pragma once
#include <cstdint>

#include "kernels/step/recipe.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

OptimizerSettings optimizer_settings(const TrainConfig& config);

/// Returns the smallest float >= x. Used for noise, which rounding must not reduce.
float float_above(double x);

/// Returns the largest float <= x. Used for factors on gradients, so that no example adds more to a
/// sum than the privacy proof allows.
float float_below(double x);

/// Returns the learning rate of a step, counted from 0, of a training with `steps` steps. With
/// ScheduleKind::adaptive it is only the rate's public part: the engine also divides it by b, the
/// root of a sum of squared gradient norms that it keeps.
double learning_rate(const TrainConfig& config, std::uint64_t steps, std::uint64_t steps_per_epoch,
                     std::uint64_t step);

/// Computes the scalars of each step (learning rate, noise, Adam's bias corrections, weight
/// averaging, clipping norm) from the settings and the privacy plan. Both are fixed before training
/// starts.
class Schedule {
 public:
  Schedule(const TrainConfig& config, const PrivacyPlan& plan, std::uint64_t steps_per_epoch);

  /// Returns the learning rate of a step, counted from 0.
  double learning_rate(std::uint64_t step) const;
  StepScalars at(std::uint64_t step) const;

 private:
  TrainConfig config_;
  PrivacyPlan plan_;
  std::uint64_t steps_per_epoch_;
};

}  // namespace cudp
