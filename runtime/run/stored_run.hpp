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

/// An interrupted run, read from its folder.
struct StoredRun {
  RunFolder folder;
  FolderLock lock;
  Checkpoint checkpoint;
  /// Key of the run; nullopt if it is lost, or if the user requested fresh noise. Without it,
  /// repeated steps are new releases and are charged.
  std::optional<SharedKey> key;
  privacy::Ledger ledger;
  bool ledger_was_lost = false;  ///< whether the ledger was lost, now or before; see Checkpoint
  TrainConfig config;            ///< config of the run, with the changes that the flags may make
  std::string why;               ///< reason why there is no key, in words
};

/// Opens the folder that --resume names, at its newest intact checkpoint. Throws InputError if it
/// is no run folder, if flags would change the experiment, or if the checkpoint or the ledger was
/// not written by the run. Throws BudgetError if it cannot be determined what was spent.
StoredRun open_stored_run(const Settings& flags, Reporter& reporter);

/// Throws InputError if the data, the model or the unit of privacy do not fit the run. If repeated
/// steps would draw the same noise as before, also throws unless everything is the same to the bit:
/// program, arithmetic, training examples in their order. The same noise on two different sums
/// would reveal their difference. If rows are held out, all examples must be the same in any case.
void check_same_run(const StoredRun& run, const Experiment& experiment);

/// Returns the column of the data's unit of privacy; "" if each row is a unit.
std::string unit_name(const DataSplit& data);

/// Writes the ledger durably.
void write_ledger(const RunFolder& folder, const privacy::Ledger& ledger, const Seal& seal);

/// Returns the tag by which a checkpoint recognises its training set: a keyed hash of the data,
/// followed by a hash of the run's key. If rows are held out, the hash covers training and held-out
/// rows together, and its key is that of the hold-out's coins, which stays when the run gets a new
/// key. Requires that show_features has not been called. On ranks, the result on
/// rank 0 counts; the others contribute their parts.
std::string data_tag_of(const Experiment& experiment, const RandomKey& key);

}  // namespace cudp
