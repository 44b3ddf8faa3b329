#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Checks the settings before a private number of examples is released, because a later refusal
/// would waste that release. Throws if the settings cannot keep the budget for any number, or if a
/// noise multiplier (--sigma) keeps it only for some numbers. Depends on public settings only.
///
/// A noise multiplier that passes keeps the budget for every number from the batch (from 25 if the
/// rule for tables chooses the batch) up to 2^32, or up to a training of 2^22 steps; with adp-sgd
/// up to 4096 batches. After the release, the number may still refuse a batch above it, and numbers
/// that a method computes from it by its own rule.
///
/// noise: noise of that release. Requires noise > 0. counted: the ledger that charges it. Throws
/// the exceptions that the method would throw after the release, naming the conflict.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
