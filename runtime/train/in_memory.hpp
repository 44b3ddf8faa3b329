#pragma once
#include "runtime/config.hpp"
#include "runtime/dataset.hpp"
#include "runtime/plan.hpp"

namespace cudp {

struct TrainedInMemory {
  double test_accuracy = 0.0;
  PrivacyPlan plan;
};

/// A whole run as `cudp train` makes it, on a copy of `data`, without a run folder: for
/// experiments. Only methods whose releases are in the plan (PlannedMethod); config.seed must be
/// set, because nothing of such a run is for release. CPU. Throws InputError, BudgetError.
TrainedInMemory train_in_memory(const TrainConfig& config, const DataSplit& data);

}  // namespace cudp
