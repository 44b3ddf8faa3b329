#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// The ranks of the job that mpirun or srun has started this process in; null where it was started
/// alone, and MPI is not touched. Rank 0 of MPI's world is rank 0. Threads share the cores that
/// ranks of a node have in common. Throws InputError where a launcher has started several processes
/// that do not know of each other: each would train and release for itself.
std::unique_ptr<Ranks> mpi_ranks(std::chrono::milliseconds timeout);

/// The library that this build has for it, in words; empty where there is none.
std::string mpi_library();

}  // namespace cudp
