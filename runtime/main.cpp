#include <malloc.h>

#include "runtime/cli/commands.hpp"

namespace {

/// Makes the memory that is freed stay with the process, up to 16 MiB of each arena, so that arrays
/// that are made again and again (by an accountant, an evaluation) are not fetched from the system
/// and cleared by it each time. Larger arrays are returned when they are freed.
void keep_freed_memory() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 4 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 16 * kMiB);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  return cudp::run_command_line(argc, argv);
}
