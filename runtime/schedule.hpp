#pragma once
#include <cstdint>

#include "kernels/update.hpp"
#include "runtime/config.hpp"
#include "runtime/plan.hpp"

namespace cudp {

OptimizerSettings optimizer_settings(const TrainConfig& config);

/// The numbers of every step, known before training starts: learning rate, noise, bias corrections,
/// averaging.
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
