#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Connects to the other processes of the job in which mpirun or srun has started this one; returns
/// null if it was started alone, in which case MPI is not initialised. Rank 0 of MPI's world is
/// rank 0. Threads share the cores that ranks of a node have in common. Throws InputError if a
/// launcher has started several processes that are not connected by MPI, or for which there is no
/// MPI library, because each would train and release by itself.
std::unique_ptr<Ranks> mpi_ranks(std::chrono::milliseconds timeout);

/// Returns the name of the MPI library of this machine; "" if there is none.
std::string mpi_library();

}  // namespace cudp
