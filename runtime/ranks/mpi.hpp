#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Connects to the other processes of the job in which mpirun or srun has started this one. Returns
/// null if it was started alone; MPI is then not initialised. timeout: how long a rank waits for
/// another one. Ranks have their numbers in MPI_COMM_WORLD. If several ranks of a node may use the
/// same cores, each uses only its share of them. Throws InputError if a launcher has started
/// several processes but MPI does not connect them, or there is no MPI library: each process would
/// then train and release a model by itself.
std::unique_ptr<Ranks> mpi_ranks(std::chrono::milliseconds timeout);

/// Returns the name of the MPI library of this machine; "" if there is none.
std::string mpi_library();

}  // namespace cudp
