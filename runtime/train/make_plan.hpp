#pragma once
#include <cstdint>
#include <span>

#include "models/model.hpp"
#include "runtime/config.hpp"
#include "runtime/dataset.hpp"
#include "runtime/plan.hpp"
#include "runtime/rounding.hpp"

namespace cudp {

/// The number of training examples as far as a run may know it.
struct TrainingSize {
  double value = 0.0;  ///< N, or N + N(0, noise^2)
  double noise = 0.0;  ///< 0 where N is public

  bool is_public() const { return noise == 0.0; }
  /// Steps that make an epoch: N / batch, rounded, at least 1.
  std::uint64_t steps_per_epoch(std::int64_t batch) const;
};

/// N itself where the data set says that it is public; else N plus noise that is drawn here, once
/// for the run: a small part of the budget, which the plan accounts for.
TrainingSize training_size(const DataSplit& data, const TrainConfig& config, const RandomKey& key);

/// Everything that privacy rests on, from the config and a size. Sigma is calibrated to
/// config.epsilon unless config.sigma gives it.
/// Throws InputError on a batch larger than the data, BudgetError where epsilon cannot be kept.
PrivacyPlan make_plan(const TrainConfig& config, const Network& network, const TrainingSize& size,
                      const Arithmetic& arithmetic);

/// Most steps from `first` on, at most `wanted`, that stay within epsilon after what is spent
/// already.
std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Phase> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted);

}  // namespace cudp
