#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/run/authenticator.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// Content of a checkpoint file: the state of a training, from which a resumed run continues. It
/// also has the run's settings and model, the program's id, and an authentication code of the
/// training set. A resumed run compares these with its own, because it must use the same program
/// and the same data.
struct Checkpoint {
  TrainingState training;
  std::uint64_t parameters = 0;  ///< number of parameters of the model
  std::string config;            ///< settings as TOML, including private ones (Audience::owner)
  std::string model;             ///< layers of the model, as TOML
  std::string arithmetic;        ///< Backend::arithmetic_name: how the backend rounds
  std::string program;           ///< program_id() of the program that wrote it
  std::string unit;              ///< column of the unit of privacy; "" if each row is a unit
  std::string data;  ///< authentication code of the training set (data_tag), under the run's key
  std::uint64_t key_check = 0;  ///< key_check() of the run's current random key
  /// Whether the ledger file was lost once and restored from a checkpoint, without the charges made
  /// after that checkpoint. As long as the run has its random key, this does no harm, because
  /// repeated steps have exactly the same noisy values. If the key is lost too, repeated steps have
  /// new noise, and the missing charges make the cost of what was released unknown.
  bool ledger_was_lost = false;
  /// Text boot_id() of the machine if the run's files have not been synced to disk; "" if they
  /// have. If the machine has restarted since then, the ledger on disk may lack charges for what
  /// the run released.
  std::string boot;
  /// Whether the file has the format before this one. The version that wrote it may compute another
  /// `data` of the same rows.
  bool is_earlier = false;
};

std::string encode_checkpoint(const Checkpoint& checkpoint);
/// Decodes the bytes of a checkpoint file. Throws Error if they are damaged; the message states
/// which part. Throws InputError if another version of the program wrote them, and this one cannot
/// read them. source: name of the file, for messages.
Checkpoint decode_checkpoint(const std::string& bytes, const std::string& source);

/// Writes a checkpoint, with its authentication code, to the file FOLDER/checkpoint-STEP. Then
/// removes all but the two newest checkpoints.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                     const Authenticator& authenticator, Sync sync = Sync::yes);

/// A checkpoint that was read from its file.
struct StoredCheckpoint {
  Checkpoint checkpoint;
  AuthenticatedFile file;  ///< content and authentication code of the file
  std::filesystem::path path;

  /// Returns whether the file's authentication code is valid, i.e. whether a run with the
  /// authenticator's key wrote it.
  bool is_authentic(const Authenticator& authenticator) const;
};

/// Returns the newest undamaged checkpoint in a folder; nullopt if there is none. damaged: called
/// with a message for the user for each damaged checkpoint, and for the newest one that another
/// version of the program wrote and this one cannot read. Throws InputError if there are none but
/// those.
std::optional<StoredCheckpoint> newest_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& damaged);

void remove_checkpoints(const std::filesystem::path& folder);

}  // namespace cudp
