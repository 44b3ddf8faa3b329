#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Forks ranks 1 to n - 1 and continues as rank 0. Each other rank runs `follow` and ends with its
/// result; if `follow` throws, the training ends on all ranks. Requires a single thread, that
/// BlockedSignals lives, and that no device has been used. The other ranks die with this process,
/// ignore interrupt signals, and get equal shares of its cores. If one of them is lost, rank 0's
/// next wait throws RanksError. The destructor of the result waits for the other ranks. Throws
/// Error if a process cannot be created.
std::unique_ptr<Ranks> fork_ranks(int n, std::chrono::milliseconds timeout,
                                  const std::function<Exit(Ranks&)>& follow);

}  // namespace cudp
