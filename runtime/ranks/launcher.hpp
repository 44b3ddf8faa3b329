#pragma once
#include <cstdlib>
#include <string>

namespace cudp {

/// Number of processes that a launcher, such as mpirun, has started, and the name of the
/// environment variable that states this number. If no launcher has started this process, or it has
/// started one process only: 1 and "". SLURM_NTASKS is not used, because it is also set in a batch
/// script that starts one process.
struct Launched {
  std::string variable;
  long processes = 1;
};

/// Returns whether a launcher that works with MPI, such as mpirun, has started this process and
/// given it a rank.
inline bool has_rank_of_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

inline Launched launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    if (const long n = std::strtol(value, nullptr, 10); n > 1) return {name, n};
  }
  return {};
}

}  // namespace cudp
