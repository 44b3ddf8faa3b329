#pragma once
#include <optional>
#include <string>

#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// What the ranks of a run need to prepare what rank 0 prepares.
struct Introduction {
  TrainConfig config;  ///< resolved
  std::string model;   ///< known_model of prepare()
  SharedKey key;
  std::optional<SharedKey> coins;
};

/// By rank 0, before it prepares: tells the others. Throws InputError where the method does not
/// train on several.
void introduce(Ranks& ranks, const Introduction& introduction);
/// By rank 0, once it has prepared: throws InputError that names a rank whose program, arithmetic,
/// data or settings are not its own.
void check_alike(const Experiment& experiment, const RandomKey& key);
/// By the others, at that moment: what check_alike compares.
void tell_facts(const Experiment& experiment, const RandomKey& key);
/// By rank 0: the others resume with it.
void announce_resume(Ranks& ranks, const Checkpoint& checkpoint, bool same_key);

/// By rank 0: the others join in joined_block_tags, of the training set and, where rows are held
/// out, of these.
void announce_seal(Ranks& ranks, const RandomKey& key);
/// The codes of the blocks of all ranks' examples of a part of the data, in order; on others than
/// rank 0 of no use.
std::string joined_block_tags(const Experiment& experiment, const Seal& seal, const Dataset& part);

/// The whole of ranks 1 to R - 1: does what rank 0 orders until it stops. It writes no file, says
/// nothing, and has a ledger of its own, which it tells nobody. Throws Error.
Exit follow_run(Ranks& ranks);

}  // namespace cudp
