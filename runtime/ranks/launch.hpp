#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Makes ranks 1 to n - 1 of this process, rank 0, which goes on here: each runs `follow` and ends
/// with its result; where it throws, the training ends on all. To be called while there is one
/// thread, and BlockedSignals, and before a device is touched. The others die with this process,
/// know no signals that ask for an end, and share its cores equally; where one of them is lost,
/// rank 0's next wait says so. The ranks that this returns wait for the others where they end.
/// Throws Error where the system gives no process.
std::unique_ptr<Ranks> fork_ranks(int n, std::chrono::milliseconds timeout,
                                  const std::function<Exit(Ranks&)>& follow);

}  // namespace cudp
