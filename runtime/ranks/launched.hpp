#pragma once
#include <cstdlib>
#include <string>

namespace cudp {

/// What a launcher says of the processes that it has started: the variable, and their number; none
/// where it has started one. SLURM_NTASKS does not count: a batch script has it, too.
struct Launched {
  std::string variable;
  long processes = 1;
};

/// Whether a launcher that can tell MPI has given this process its rank.
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
