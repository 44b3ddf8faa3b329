#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Starts a training with n ranks (processes) on this node: forks ranks 1 to n - 1 and continues as
/// rank 0. Each forked process calls `follow` and exits with the code that it returns; if `follow`
/// throws, the training ends on all ranks. The forked processes end if this process dies, and
/// ignore interrupt signals. All n processes get equal shares of this process's cores. If a forked
/// process dies, the next function of Ranks in which rank 0 waits for it throws RanksError. The
/// destructor of the returned object waits until the other ranks have ended. timeout: how long a
/// rank waits for another one.
///
/// Requires that the process has a single thread, that a BlockedSignals object exists, and that no
/// CUDA device has been used. Throws Error if a process cannot be created.
std::unique_ptr<Ranks> fork_ranks(int n, std::chrono::milliseconds timeout,
                                  const std::function<Exit(Ranks&)>& follow);

}  // namespace cudp
