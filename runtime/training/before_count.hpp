#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Checks the settings before a private number of examples is released, because a later refusal
/// would waste that release. Throws if the settings exceed the budget for every number of examples,
/// or if the noise multiplier --sigma exceeds it for some. Depends on public settings only.
///
/// A noise multiplier that passes keeps the budget for every number from the batch (from 25 if the
/// rule for tables chooses the batch) up to 2^32, or up to a training of 2^22 steps; with adp-sgd
/// up to 4096 batches. After the release, the number may still refuse a batch above it, and numbers
/// that a method computes from it by its own rule.
///
/// noise: standard deviation of the noise on the number, > 0. counted: the ledger with the charge
/// for it. Throws the exceptions that the method would throw after the release, naming the
/// conflict.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
