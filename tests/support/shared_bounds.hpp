#pragma once
// Bounds of the accountant in memory that a process of tests shares with the processes it starts,
// so that hundreds of trainings with the same settings compute each bound once.
#include <memory>

#include "runtime/sweep/shared_bounds.hpp"

namespace cudp {

/// Returns the bounds of the process that started this program; null if it shares none.
std::unique_ptr<SharedBounds> inherited_bounds();

/// Makes processes that this one starts from now on share their bounds, among themselves: forks of
/// it, and the program of tests/support/cudp_main.cpp. This process computes its own.
void share_bounds_of_started_processes();

}  // namespace cudp
