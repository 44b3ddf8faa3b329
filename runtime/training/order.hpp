#pragma once
#include <cstdint>
#include <string>

#include "runtime/methods/method.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// What rank 0 does next, and the others with it.
struct Order {
  enum class Kind : std::uint64_t {
    introduce,  ///< what is trained, which follows
    seal,       ///< codes of the data under a key that follows
    begin,      ///< Training::begin
    resume,     ///< Training::resume, from a state that follows
    pay_again,  ///< Training::pay_again
    authorise,  ///< Method::authorise(step, until)
    train,      ///< Method::train(step, until)
    evaluate,   ///< answers to the test set at the present parameters
    state,      ///< Method::state, compared and joined
    stop        ///< the others end
  };
  Kind kind;
  std::uint64_t step = 0;
  std::uint64_t until = 0;
};

/// By rank 0: what it does next. Nothing where it is alone.
void announce(Ranks& ranks, Order order);
/// By another rank: what rank 0 does next.
Order next_order(Ranks& ranks);

/// The ranks' states as one, on rank 0: arrays by example joined in the order of the ranges. Throws
/// RanksError that names a rank whose state, but for these, is another. On other ranks `mine`.
MethodState joined(MethodState mine, Ranks& ranks);
/// The part of a joined state that a rank restores: of arrays by example those of its range.
MethodState part_of(MethodState joined, const Dataset& train);

}  // namespace cudp
