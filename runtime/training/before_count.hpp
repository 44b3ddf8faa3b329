#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Refuses, before a private number of examples is released, the settings that cannot keep the
/// budget whatever that number is, and a noise multiplier (--sigma) that keeps it for some numbers
/// only: the release would be paid for in vain. A function of public settings: plans are made for
/// numbers of examples from the batch to some thousand times the batch.
///
/// noise: of that release, not 0. counted: the ledger that charges it. Throws what the method would
/// throw after the release, with the conflict named.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
