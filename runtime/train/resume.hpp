#pragma once
#include "privacy/ledger.hpp"
#include "runtime/config/settings.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/train/experiment.hpp"
#include "runtime/train/make_plan.hpp"

namespace cudp {

/// The folder that --resume names. Throws InputError where it is none of a run.
RunFolder resumed_folder(const Settings& flags);

/// The ledger file, or the checkpoint's copy where the file is gone but the key is there: with the
/// same key, repeated steps release nothing new. Throws Error where neither tells what was spent.
privacy::Ledger resumed_ledger(const RunFolder& folder, const Checkpoint& checkpoint,
                               bool same_key);

/// Throws InputError where the run's key is there, but sums come out with other last bits than when
/// it began: steps that are repeated would then put the same noise on other sums, and who sees both
/// has their difference. Without the key they have noise of their own, and are charged.
void check_same_arithmetic(const RunFolder& folder, const Checkpoint& checkpoint,
                           const Experiment& experiment);

/// Throws InputError where the data or the model are not those of the checkpoint.
void check_same_data(const Checkpoint& checkpoint, const Experiment& experiment,
                     const TrainingSize& size);

/// The method of the run in a folder; dpsgd where that does not say: whoever resumes says what is
/// missing.
MethodKind method_of_run(const RunFolder& folder);

}  // namespace cudp
