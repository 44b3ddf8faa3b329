// The build passes places to this file alone, so that the others compile to the same everywhere.
#include "tests/support/test_files.hpp"

#include <cstdlib>
#include <system_error>

namespace cudp {

std::filesystem::path shared_file(const std::string& name) {
  const char* place = std::getenv("CUDP_SHARED");
  return std::filesystem::path(place != nullptr ? place : CUDP_SHARED_DIR) / name;
}

std::filesystem::path golden_file(const std::string& name) {
  return program_at(std::filesystem::path(CUDP_GOLDEN_DIR) / name);
}

// With CUDP_SHARES_BOUNDS it is the program of cudp_main.cpp: the same, but for bounds that its
// processes share.
const char* cudp_binary() {
  const bool shares = std::getenv("CUDP_SHARES_BOUNDS") != nullptr;
  static const std::string found = program_at(shares ? CUDP_SHARING : CUDP_BINARY).string();
  return found.c_str();
}

std::filesystem::path program_at(const std::filesystem::path& built) {
  std::error_code none;
  if (std::filesystem::exists(built, none)) return built;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / built.filename();
}

std::filesystem::path kernel_reports() { return CUDP_KERNEL_REPORTS; }

}  // namespace cudp
