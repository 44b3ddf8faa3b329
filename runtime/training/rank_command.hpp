#pragma once
#include <cstdint>
#include <string>

#include "runtime/methods/method.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// A command that rank 0 sends to the other ranks (processes that train together), so that all
/// ranks, including rank 0, do the same next.
struct RankCommand {
  enum class Kind : std::uint64_t {
    introduce,  ///< other ranks receive the Introduction that follows the command
    /// Command to the other ranks to receive a key, and to compute the authentication codes of
    /// their data with it.
    block_tags,
    begin,         ///< Training::begin
    resume,        ///< Training::resume, from a state that follows
    charge_again,  ///< Training::charge_again
    authorise,     ///< Method::authorise(step, until)
    train,         ///< Method::train(step, until)
    evaluate,      ///< compute the logits of the test set with the current parameters
    state,         ///< compare Method::state of all ranks, and combine it on rank 0
    stop           ///< other ranks end
  };
  Kind kind;
  std::uint64_t step = 0;
  std::uint64_t until = 0;
};

/// Sends a command to all other ranks (processes that train together). Called by rank 0. Does
/// nothing if there is only one rank.
void announce(Ranks& ranks, RankCommand command);
/// Waits for the next command that rank 0 sends, and returns it. Called by the other ranks
/// (processes).
RankCommand next_command(Ranks& ranks);

/// Combines the states of the training method on all ranks (processes); all of them call this with
/// their own state, `mine`. Returns the combined state on rank 0, and `mine` on other ranks. Arrays
/// with one number per example are concatenated in rank order; everything else must be equal on all
/// ranks. If it is not, throws RanksError with the number of a rank that differs.
MethodState joined(MethodState mine, Ranks& ranks);
/// Returns this rank's (process's) part of a state that joined() has combined. Arrays with one
/// number per example are reduced to this rank's examples; everything else is copied. train: this
/// rank's range of the training set.
MethodState part_of(MethodState joined, const Dataset& train);

}  // namespace cudp
