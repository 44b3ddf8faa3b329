#pragma once
#include <optional>
#include <string>

#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Data that rank 0 sends to the other ranks, so that they prepare the same training.
struct Introduction {
  TrainConfig config;  ///< resolved
  std::string model;   ///< argument known_model of prepare()
  SharedKey key;
  std::optional<SharedKey> coins;
  /// Argument `initial` of prepare(); nullopt for a new run.
  std::optional<PublicWeights> initial = {};
};

/// Sends an Introduction to the other ranks. Called by rank 0 before it prepares. Throws InputError
/// if the method cannot train on several ranks.
void introduce(Ranks& ranks, const Introduction& introduction);
/// Compares program, arithmetic, data and settings of all ranks. Called by rank 0 after it has
/// prepared. Throws InputError naming a rank that differs from rank 0.
void check_same_facts(const Experiment& experiment, const RandomKey& key);
/// Sends the values that check_same_facts compares. Called by the other ranks at the same point.
void send_facts(const Experiment& experiment, const RandomKey& key);
/// Makes the other ranks resume with the checkpoint. Called by rank 0.
void announce_resume(Ranks& ranks, const Checkpoint& checkpoint, bool same_key);

/// Makes the other ranks take part in joined_block_tags(), for the training set and, if rows are
/// held out, for the held-out rows. Called by rank 0.
void announce_seal(Ranks& ranks, const RandomKey& key);
/// Returns the codes of all ranks' blocks of a part of the data, in order. Only rank 0's result is
/// meaningful.
std::string joined_block_tags(const Experiment& experiment, const Seal& seal, const Dataset& part);

/// Runs ranks 1 to R - 1: executes the orders of rank 0 until it stops. Writes no file, prints
/// nothing, and keeps a ledger of its own that it reports to no one. Throws Error.
Exit follow_run(Ranks& ranks);

}  // namespace cudp
