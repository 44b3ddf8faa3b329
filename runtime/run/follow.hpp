#pragma once
#include <optional>
#include <string>

#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Message from rank 0 to the other ranks (processes), with the arguments with which all of them
/// call prepare().
struct Introduction {
  TrainConfig config;  ///< complete settings of the training
  std::string model;   ///< prepare()'s argument known_model
  SharedKey key;
  std::optional<SharedKey> split_key;
  /// prepare()'s argument `initial`; nullopt for a new run.
  std::optional<PublicWeights> initial = {};
};

/// Sends an Introduction to the other ranks. Called by rank 0 before prepare(). Throws InputError
/// if the method cannot train on several ranks.
void introduce(Ranks& ranks, const Introduction& introduction);
/// Checks that program, arithmetic, data and settings are the same on all ranks. Called by rank 0
/// after prepare(). Throws InputError, with the number of a rank that differs from rank 0.
void check_same_facts(const Experiment& experiment, const RandomKey& key);
/// Sends the facts that check_same_facts compares. Called by the other ranks while rank 0 calls
/// check_same_facts.
void send_facts(const Experiment& experiment, const RandomKey& key);
/// Makes the other ranks resume from the checkpoint. Called by rank 0. same_key: whether the run
/// has the random key of the checkpoint; false if that was lost.
void announce_resume(Ranks& ranks, const Checkpoint& checkpoint, bool same_key);

/// Makes the other ranks call joined_block_tags() for the training set and, if rows are held out,
/// for the held-out rows. Called by rank 0.
void announce_block_tags(Ranks& ranks, const RandomKey& key);
/// Returns the authentication codes of all blocks (Authenticator::block_tags) of a data set that is
/// distributed over ranks, in order. All ranks call it; only rank 0's result is complete. part:
/// this rank's range of the training set or of the held-out rows.
std::string joined_block_tags(const Experiment& experiment, const Authenticator& authenticator,
                              const Dataset& part);

/// Main loop of ranks other than 0: executes commands of rank 0 until rank 0 sends `stop`. Writes
/// no file and prints nothing. Throws Error.
Exit follow_run(Ranks& ranks);

}  // namespace cudp
