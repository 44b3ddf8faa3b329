#pragma once
#include <cstdint>
#include <span>

#include "models/model.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/run/training_size.hpp"

namespace cudp {

/// Everything that privacy rests on, from the config and a size. Sigma is calibrated to
/// config.epsilon unless config.sigma gives it.
/// Throws InputError on a batch larger than a public number of examples (a private one bounds the
/// batch instead, as the release it is), BudgetError where epsilon cannot be kept.
PrivacyPlan make_plan(const TrainConfig& config, const Network& network, const TrainingSize& size,
                      const Arithmetic& arithmetic);

/// Most steps from `first` on, at most `wanted`, that stay within epsilon after what is spent
/// already.
std::uint64_t affordable_steps(const PrivacyPlan& plan, std::span<const privacy::Phase> already,
                               double epsilon, std::uint64_t first, std::uint64_t wanted);

}  // namespace cudp
