// The build passes places to this file alone, so that the others compile to the same everywhere.
#include "tests/support/test_files.hpp"

#include <cstdlib>

namespace cudp {

std::filesystem::path shared_file(const std::string& name) {
  const char* place = std::getenv("CUDP_SHARED");
  return std::filesystem::path(place != nullptr ? place : CUDP_SHARED_DIR) / name;
}

std::filesystem::path golden_file(const std::string& name) {
  return std::filesystem::path(CUDP_GOLDEN_DIR) / name;
}

const char* cudp_binary() { return CUDP_BINARY; }

std::filesystem::path kernel_reports() { return CUDP_KERNEL_REPORTS; }

}  // namespace cudp
