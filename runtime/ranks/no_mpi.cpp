// Replaces mpi.cpp in a build without MPI.
#include <spdlog/fmt/fmt.h>

#include "runtime/ranks/launched.hpp"
#include "runtime/ranks/mpi.hpp"

namespace cudp {

std::unique_ptr<Ranks> mpi_ranks(std::chrono::milliseconds) {
  const Launched all = launched();
  if (all.processes == 1) return nullptr;
  throw InputError(fmt::format(
      "{}: expected one process, or a build with MPI, found {} processes, each of which "
      "would release for itself; on one node, --ranks {}",
      all.variable, all.processes, all.processes));
}

std::string mpi_library() { return ""; }

}  // namespace cudp
