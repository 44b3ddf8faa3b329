#pragma once
#include "privacy/ledger.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Checks the settings of a training whose number of examples is private, before that number is
/// released with noise. (If the training failed only after the release, the privacy spent on the
/// release would be wasted.) Throws the InputError or BudgetError that the training method would
/// throw later, if the training exceeds the budget for every possible number or, with --sigma, for
/// some number. Depends on public settings only.
///
/// A value of --sigma that passes the check stays within the budget for every number of examples in
/// a range. The range begins at the batch size (at 25 if the batch size is chosen automatically for
/// a table). It ends at 2^32, or at the number for which a training has 2^22 steps if that is less.
/// With the method adp-sgd it ends at 4096 batches. A training that passes can still fail later,
/// because its batch is larger than the noisy number, or because of a setting that the method
/// computes from that number.
///
/// noise: standard deviation of the noise on the number, > 0. counted: ledger of the run, with the
/// charge for releasing the number.
void check_before_count(const Experiment& experiment, double noise, const privacy::Ledger& counted);

}  // namespace cudp
