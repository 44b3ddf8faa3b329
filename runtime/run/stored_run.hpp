#pragma once
#include <optional>
#include <string>

#include "privacy/ledger.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// An interrupted run, as its folder has it.
struct StoredRun {
  RunFolder folder;
  FolderLock lock;
  Checkpoint checkpoint;
  /// The run's own; empty where it is lost, or where the user asked for fresh noise. Then repeated
  /// steps are new releases, and are charged.
  std::optional<SharedKey> key;
  privacy::Ledger ledger;
  bool ledger_was_lost = false;  ///< now or before, as Checkpoint has it
  TrainConfig config;            ///< the run's, with what the flags may change
  std::string why;               ///< there is no key, in words
};

/// Opens the folder that --resume names, at its newest intact checkpoint. Throws InputError where
/// it is none of a run, where flags would change the experiment, or where the checkpoint or the
/// ledger is not what the run wrote; BudgetError where it cannot be known what was spent.
StoredRun open_stored_run(const Settings& flags, Reporter& reporter);

/// Throws InputError where the data or the model do not fit the run at all, or the unit of
/// privacy is another one; and, where repeated
/// steps would draw the noise that they drew before, unless everything is as it was, to the bit:
/// program, arithmetic, training examples in their order. The same noise on two sums tells their
/// difference. Where rows are held out, all examples must be as they were in any case.
void check_same_run(const StoredRun& run, const Experiment& experiment);

/// The column of the data's unit of privacy; empty where each row is one.
std::string unit_name(const DataSplit& data);

/// Durable when it returns.
void write_ledger(const RunFolder& folder, const privacy::Ledger& ledger, const Seal& seal);

/// The code of the training set by the seal of the run's key, for its checkpoints. Where rows are
/// held out it is of both parts, and by the key of their coins, which a fresh key does not take the
/// place of. Before features that rest on a release are shown. Of ranks, rank 0's; the others give
/// their parts.
std::string data_tag_of(const Experiment& experiment, const RandomKey& key);

}  // namespace cudp
