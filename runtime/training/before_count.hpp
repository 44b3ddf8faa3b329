#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Checks the settings before the private number of examples is released with noise, because that
/// release would be wasted if the training were refused later. Throws if the training exceeds the
/// budget whatever that number is, or, if --sigma is set, if it does for some number. Depends on
/// public settings only.
///
/// A value of --sigma that passes stays within the budget for every number of examples from the
/// batch size (from 25 if the batch size is chosen automatically for a table) up to 2^32, or up to
/// a training of 2^22 steps; with adp-sgd up to 4096 batches. After the release, a training can
/// still be refused because its batch is larger than the noisy number, or because of a setting that
/// the method computes from that number.
///
/// noise: standard deviation of the noise on the number, > 0. counted: the ledger, with the charge
/// for that release. Throws the InputError or BudgetError that the method would throw after the
/// release.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
