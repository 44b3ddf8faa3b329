#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/run/seal.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// A training in progress, with the facts that tell whether the same program resumes it on the same
/// data.
struct Checkpoint {
  TrainingState training;
  std::uint64_t parameters = 0;  ///< number of parameters of the model
  std::string config;            ///< TOML with Audience::owner
  std::string model;             ///< TOML of the layers
  std::string arithmetic;        ///< Backend::arithmetic_name
  std::string program;           ///< program_id
  std::string unit;              ///< column of the unit of privacy; "" if each row is a unit
  std::string data;              ///< data_tag of the training set, with a seal of the run's key
  std::uint64_t key_check = 0;   ///< key_check of the random key since the last loss of a key
  /// True if the ledger was lost once, and restored from a checkpoint. Charges after that
  /// checkpoint are then missing. That is correct as long as the same key repeats the same
  /// releases, but not after the key is lost.
  bool ledger_was_lost = false;
};

std::string encode_checkpoint(const Checkpoint& checkpoint);
/// Decodes a checkpoint. Throws Error naming the damage.
Checkpoint decode_checkpoint(const std::string& bytes, const std::string& source);

/// Writes FOLDER/checkpoint-STEP durably, then removes all but the two newest checkpoints.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                     const Seal& seal);

struct StoredCheckpoint {
  Checkpoint checkpoint;
  SealedFile file;  ///< file that it was read from
  std::filesystem::path path;

  /// Returns whether the run with this key wrote the checkpoint.
  bool is_sealed_by(const Seal& seal) const;
};

/// Returns the newest intact checkpoint of a folder. `damaged` is called with a line for each one
/// that is damaged.
std::optional<StoredCheckpoint> newest_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& damaged);

void remove_checkpoints(const std::filesystem::path& folder);

}  // namespace cudp
