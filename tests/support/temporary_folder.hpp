#pragma once
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace cudp {

/// Returns the folder in which tests make theirs: TMPDIR if it is set, otherwise one in memory if
/// that has space and allows programs to be run. Trainings sync most of their files, which is slow
/// on a disk.
inline std::filesystem::path parent_of_test_folders() {
  constexpr std::uintmax_t kRoom = std::uintmax_t{4} << 30;  // bytes
  const char* const memory = "/dev/shm";
  struct statvfs at {};
  const bool fits = ::statvfs(memory, &at) == 0 && (at.f_flag & ST_NOEXEC) == 0 &&
                    static_cast<std::uintmax_t>(at.f_bavail) * at.f_frsize >= kRoom &&
                    ::access(memory, W_OK | X_OK) == 0;
  return fits && std::getenv("TMPDIR") == nullptr ? memory : std::filesystem::temp_directory_path();
}

/// Temporary folder of one test, removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // Random, since a killed process leaves its folder behind, and of letters that make no word or
    // number, since tests look for words and numbers in output that has the path.
    std::random_device random;
    for (int attempt = 0; attempt < 1000; ++attempt) {
      std::string name = "cudp-test-";
      for (int i = 0; i < 6; ++i) name += "jkqvwxz"[random() % 7];
      path_ = parent_of_test_folders() / name;
      if (::mkdir(path_.c_str(), 0700) == 0) return;
    }
    throw std::runtime_error("no temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace cudp
