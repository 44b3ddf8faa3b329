#include "tests/support/shared_bounds.hpp"

#include <cstdlib>
#include <string>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudp {
namespace {

constexpr const char* kFileVariable = "CUDP_SHARED_BOUNDS";  // number of the open file

}  // namespace

std::unique_ptr<SharedBounds> inherited_bounds() {
  const char* const number = std::getenv(kFileVariable);
  if (number == nullptr) return nullptr;
  const int file = std::atoi(number);
  struct stat status = {};
  // A program in between may have closed the file, or opened another one with this number.
  if (fstat(file, &status) != 0 || status.st_size != SharedBounds::kBytes) return nullptr;
  return SharedBounds::in_file(file);
}

void share_bounds_of_started_processes() {
  const int file = memfd_create("bounds", 0);  // open as long as the process
  if (file < 0 || ftruncate(file, SharedBounds::kBytes) != 0) return;
  static auto* const bounds = SharedBounds::in_file(file).release();
  if (bounds == nullptr) return;
  setenv(kFileVariable, std::to_string(file).c_str(), 1);
  pthread_atfork(nullptr, nullptr, [] { privacy::use_bound_store(bounds); });
}

}  // namespace cudp
