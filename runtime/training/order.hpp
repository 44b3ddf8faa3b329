#pragma once
#include <cstdint>
#include <string>

#include "runtime/methods/method.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// An action of rank 0 that the other ranks take part in.
struct Order {
  enum class Kind : std::uint64_t {
    introduce,  ///< other ranks receive the Introduction that follows
    seal,       ///< other ranks compute codes of the data under a key that follows
    begin,      ///< Training::begin
    resume,     ///< Training::resume, from a state that follows
    pay_again,  ///< Training::pay_again
    authorise,  ///< Method::authorise(step, until)
    train,      ///< Method::train(step, until)
    evaluate,   ///< compute outputs for the test set with the current parameters
    state,      ///< Method::state of all ranks is compared and joined
    stop        ///< the other ranks end
  };
  Kind kind;
  std::uint64_t step = 0;
  std::uint64_t until = 0;
};

/// Sends the next order to the other ranks. Called by rank 0. Does nothing if it is alone.
void announce(Ranks& ranks, Order order);
/// Receives the next order of rank 0. Called by other ranks.
Order next_order(Ranks& ranks);

/// Joins the ranks' states into one, on rank 0: arrays by example in the order of the ranges.
/// Throws RanksError naming a rank whose other values differ. On other ranks returns `mine`.
MethodState joined(MethodState mine, Ranks& ranks);
/// Returns the part of a joined state that a rank restores: its range of arrays by example, and
/// everything else.
MethodState part_of(MethodState joined, const Dataset& train);

}  // namespace cudp
