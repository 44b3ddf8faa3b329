#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// Returns the split of the config's budget if a private number of examples has a part of its own.
/// Returns nullopt if the number is public, or if the method's proof treats it as one more release.
/// It is a function of public settings. Throws BudgetError if the budget has no such split.
std::optional<privacy::CountSplit> count_split(const TrainConfig& config, const DataSplit& data);

/// Returns the facts that a method is made from. ledger: charges of the run so far, including the
/// number of examples. If it splits the budget, the method gets the training's part, which also
/// covers the releases in `before`; the rules for a public number of examples then apply.
MethodContext method_context(const TrainConfig& config, const Network& network,
                             const TrainingSize& size, const Arithmetic& arithmetic,
                             const privacy::Ledger& ledger);

}  // namespace cudp
