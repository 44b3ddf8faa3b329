#pragma once
#include <optional>

#include "privacy/count_split.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// The split of the config's budget where a private number of examples has a part of its own; empty
/// where the number is public, or the method's proof has it as one release more. A function of
/// public settings. Throws BudgetError where the budget has no such split.
std::optional<privacy::CountSplit> count_split(const TrainConfig& config, const DataSplit& data);

/// The facts that a method is made from. ledger: of the run so far, the number of examples counted.
/// Where it splits the budget, the method's is the training's part, whose releases `before` lists:
/// the rules of a public number of examples hold for it.
MethodContext method_context(const TrainConfig& config, const Network& network,
                             const TrainingSize& size, const Arithmetic& arithmetic,
                             const privacy::Ledger& ledger);

}  // namespace cudp
