#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// Returns how epsilon and delta are divided between two things: the release of the noisy number of
/// training examples, and the training. Returns nullopt if there is no such division, because the
/// number is public or the method's own proof covers its release. Depends on public settings only.
/// Throws BudgetError if the budget cannot be divided.
std::optional<privacy::CountSplit> count_split(const TrainConfig& config, const DataSplit& data);

/// Returns the public properties of a run from which its method is made. ledger: charges of the run
/// so far, including that of the noisy number of examples. If the budget is divided (count_split),
/// the method gets the training's part and treats the number of examples as public.
MethodContext method_context(const TrainConfig& config, const Network& network,
                             const TrainingSize& size, const Arithmetic& arithmetic,
                             const privacy::Ledger& ledger);

}  // namespace cudp
