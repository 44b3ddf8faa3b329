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

/// An interrupted run, as read from its folder: checkpoint, random key, ledger and settings.
struct StoredRun {
  RunFolder folder;
  FolderLock lock;
  Checkpoint checkpoint;
  /// Random key of the run; nullopt if it is lost, or if the user requested fresh noise. Without
  /// this key, steps that are repeated have new noise, so their privacy cost is charged again.
  std::optional<SharedKey> key;
  privacy::Ledger ledger;
  /// Whether the run's ledger file was lost and restored from a checkpoint, either at this resume
  /// or at an earlier one.
  bool ledger_was_lost = false;
  TrainConfig config;  ///< settings of the run, with the changes by the flags of the resume
  std::string why;     ///< message for the user: why there is no key; "" if there is one
};

/// Opens the folder that --resume names, at its newest intact checkpoint. Throws InputError if it
/// is not a run folder, if flags would change the result of the training, or if the checkpoint or
/// the ledger was not written by this run. Throws BudgetError if it cannot be determined how much
/// of the budget was spent.
StoredRun open_stored_run(const Settings& flags, Reporter& reporter);

/// Checks that `experiment` matches the stored run; throws InputError if data, model or unit of
/// privacy differ. If the run still has its random key, repeated steps draw the same noise as
/// before; program, arithmetic and the ordered training examples must then be the same to the bit,
/// because the same noise on two different sums would reveal their difference. If rows are held
/// out, all examples must be the same even if the run has a new key.
void check_same_run(const StoredRun& run, const Experiment& experiment);

/// Returns whether the data of `experiment` are, to the bit and in order, those that the run began
/// with. Requires that the run still has its random key, or that rows are held out (then the
/// checkpoint stores a key for this comparison).
bool has_data_of(const StoredRun& run, const Experiment& experiment);

/// Returns the name of the column that is the data's unit of privacy; "" if each row is a unit.
std::string unit_name(const DataSplit& data);

/// Writes the ledger file with an authentication code.
void write_ledger(const RunFolder& folder, const privacy::Ledger& ledger,
                  const Authenticator& authenticator, Sync sync);

/// Returns whether data_tag_of() of a new run is called after the training has begun, because the
/// engine then copies rows of the first steps in the same pass: for rows in a file, on the CPU.
/// Rows in memory may be converted when the training begins, and a CUDA engine copies rows from the
/// file to the device then; a code that was computed later could be that of other rows.
bool is_tagged_after_begin(const Experiment& experiment);

/// Returns the text by which a checkpoint recognises its training set: a keyed hash of the data,
/// and a keyed hash of their meaning (the schema, the loss). If rows are held out, the hash covers
/// training and held-out rows together; its key is then the one that decided which rows are held
/// out, which a run keeps even if it gets a new random key. Requires that inputs have not been
/// converted to features with noisy statistics yet (show_features()). With several ranks, call it
/// only on rank 0; it makes the other ranks compute the codes of their own examples.
/// training: see joined_block_tags().
std::string data_tag_of(const Experiment& experiment, const RandomKey& key,
                        Training* training = nullptr);

}  // namespace cudp
