#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Refuses, before a private number of examples is released, the settings that cannot keep the
/// budget whatever that number is, and a noise multiplier (--sigma) that keeps it for some numbers
/// only: the release would be paid for in vain. A function of public settings.
///
/// A noise multiplier that passes keeps the budget for every number from the batch on (from 25 on
/// where the rule for tables chooses the batch) up to 2^32, or up to where a training has 2^22
/// steps; of adp-sgd up to 4096 batches. What the number may still refuse is a batch above it, and
/// what a method works out from it by a rule of its own.
///
/// noise: of that release, not 0. counted: the ledger that charges it. Throws what the method would
/// throw after the release, with the conflict named.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
