#pragma once
#include <optional>
#include <string>

#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/training/prepare.hpp"
#include "runtime/training/training.hpp"

namespace cudp {

/// First message from rank 0 to the other ranks (processes that train together): the arguments with
/// which all of them call prepare(), which reads data and model.
struct Introduction {
  TrainConfig config;  ///< complete settings of the training
  std::string model;   ///< prepare()'s argument known_model
  SharedKey key;
  std::optional<SharedKey> split_key;
  /// Pre-trained weights of a run that is resumed, which each rank passes to prepare(); nullopt for
  /// a new run.
  std::optional<PublicWeights> initial = {};
};

/// Sends the settings and keys of the run to the other ranks (processes), which then prepare the
/// training, too. Called by rank 0 before it calls prepare(). Throws InputError if the method
/// cannot train on several ranks.
void introduce(Ranks& ranks, const Introduction& introduction);
/// Checks that program, arithmetic (how the device rounds), data and settings are the same on all
/// ranks (processes). Called by rank 0 after prepare(), while the other ranks call send_facts().
/// key: the run's random key. Throws InputError if a rank differs from rank 0, with the rank's
/// number.
void check_same_facts(const Experiment& experiment, const RandomKey& key);
/// Sends to rank 0 a description of this process's program, arithmetic (how the device rounds),
/// data and settings, so that rank 0 can check that all processes have the same. Called by the
/// other ranks while rank 0 calls check_same_facts(). key: the run's random key.
void send_facts(const Experiment& experiment, const RandomKey& key);
/// Makes the other ranks (processes) resume the training from a checkpoint. Called by rank 0.
/// same_key: whether the run still has the random key with which the checkpoint was made; false if
/// that key was lost and the run has a new one.
void announce_resume(Ranks& ranks, const Checkpoint& checkpoint, bool same_key);

/// Makes the other ranks (processes) compute the authentication codes of their parts of the
/// training set and, if rows are held out, of the held-out rows, by calling joined_block_tags().
/// Called by rank 0. key: the random key under which the codes are computed.
void announce_block_tags(Ranks& ranks, const RandomKey& key);
/// Returns the authentication codes of all blocks (Authenticator::block_tags) of a data set that is
/// distributed over ranks, in order. All ranks call it; only on rank 0 does the result have the
/// codes of all blocks. part: this rank's range of the training set or of the held-out rows.
/// training: a training of the experiment that has begun, if its device may read the rows of its
/// next steps in the same pass over the training set's file; null if there is none.
std::string joined_block_tags(const Experiment& experiment, const Authenticator& authenticator,
                              const Dataset& part, Training* training = nullptr);

/// Main loop of the ranks (processes) other than 0: executes the commands of rank 0 until rank 0
/// sends `stop`. Writes no file and prints nothing. Returns the exit code of the process. Throws
/// Error if a command fails.
Exit follow_run(Ranks& ranks);

}  // namespace cudp
