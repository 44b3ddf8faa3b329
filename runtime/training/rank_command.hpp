#pragma once
#include <cstdint>
#include <string>

#include "runtime/methods/method.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// A command that rank 0 sends to all other ranks (processes). All ranks execute it.
struct RankCommand {
  enum class Kind : std::uint64_t {
    introduce,     ///< other ranks receive the Introduction that follows
    block_tags,    ///< other ranks compute authentication codes of their data, under a key that
                   ///< follows
    begin,         ///< Training::begin
    resume,        ///< Training::resume, from a state that follows
    charge_again,  ///< Training::charge_again
    authorise,     ///< Method::authorise(step, until)
    train,         ///< Method::train(step, until)
    evaluate,      ///< compute the logits of the test set with the current parameters
    state,         ///< compare Method::state of all ranks, and combine it on rank 0
    stop           ///< the other ranks terminate
  };
  Kind kind;
  std::uint64_t step = 0;
  std::uint64_t until = 0;
};

/// Sends a command to all other ranks. Called by rank 0. Does nothing if there are no others.
void announce(Ranks& ranks, RankCommand command);
/// Receives the next command of rank 0. Called by the other ranks.
RankCommand next_command(Ranks& ranks);

/// On rank 0, returns the combined states of all ranks: arrays with one number per example are
/// concatenated in rank order, everything else must be equal. Throws RanksError naming a rank that
/// differs. On other ranks returns `mine`.
MethodState joined(MethodState mine, Ranks& ranks);
/// Returns this rank's part of a combined state. Of arrays with one number per example, it has the
/// range of this rank's training set `train`; everything else is copied.
MethodState part_of(MethodState joined, const Dataset& train);

}  // namespace cudp
