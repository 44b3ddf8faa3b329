#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/run/seal.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// A training in progress, and all that is needed to tell whether it is taken up by the same
/// program on the same data.
struct Checkpoint {
  TrainingState training;
  std::uint64_t parameters = 0;  ///< of the model
  std::string config;            ///< TOML for the owner
  std::string model;             ///< TOML of the layers
  std::string arithmetic;        ///< Backend::arithmetic_name
  std::string program;           ///< program_id
  std::string unit;              ///< column of the unit of privacy; empty: each row is one
  std::string data;              ///< data_tag of the training set, under the run's key
  std::uint64_t key_check = 0;  ///< which random key the steps since the last loss of one drew with
  /// The ledger was lost once, and taken from a checkpoint. What was charged after that checkpoint
  /// is forgotten, which is right as long as the same key draws the same again, and no longer.
  bool ledger_was_lost = false;
};

std::string encode_checkpoint(const Checkpoint& checkpoint);
/// Throws Error that says what is damaged.
Checkpoint decode_checkpoint(const std::string& bytes, const std::string& source);

/// Writes FOLDER/checkpoint-STEP durably, then removes all but the newest two.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                     const Seal& seal);

struct StoredCheckpoint {
  Checkpoint checkpoint;
  SealedFile file;  ///< what it was read from
  std::filesystem::path path;

  /// Whether the run with this key wrote it.
  bool is_sealed_by(const Seal& seal) const;
};

/// The newest checkpoint of a folder that is intact; `damaged` is told of every one that is not.
std::optional<StoredCheckpoint> newest_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& damaged);

void remove_checkpoints(const std::filesystem::path& folder);

}  // namespace cudp
