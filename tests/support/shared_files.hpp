#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace cudp {

/// A file of golden values or real data beside the project (CUDP_SHARED names another place). Tests
/// skip where it does not exist.
inline std::filesystem::path shared_file(const std::string& name) {
  const char* place = std::getenv("CUDP_SHARED");
  return std::filesystem::path(place != nullptr ? place : CUDP_SHARED_DIR) / name;
}

}  // namespace cudp
