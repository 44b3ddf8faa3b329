#include "runtime/base/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace cudp {
namespace {

/// Value for a memory limit that does not exist or is not known.
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// Returns the memory that /proc/meminfo states as available [bytes]; if there is no /proc, the
/// memory that is free.
std::uint64_t of_system() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") return kilobytes << 10;
  }
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return kNoLimit;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
}

std::uint64_t of_process(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return kNoLimit;
  return limit.rlim_cur == RLIM_INFINITY ? kNoLimit : limit.rlim_cur;
}

/// Returns the memory limit in a file of a control group [bytes]; kNoLimit if the file is missing
/// or has no number ("max").
std::uint64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? bytes : kNoLimit;
}

/// Returns the smallest memory limit of a control group and its ancestors [bytes]. root: folder of
/// the file system of control groups. path: path of the group below `root`; begins with '/'. file:
/// name of the file with a group's limit.
std::uint64_t of_group(const std::string& root, std::string path, const char* file) {
  std::uint64_t least = limit_in(root + "/" + file);
  while (path.size() > 1) {
    least = std::min(least, limit_in(root + path + "/" + file));
    path.resize(path.rfind('/'));
  }
  return least;
}

/// Returns the smallest memory limit of this process's control groups, of version 1 or 2 [bytes].
std::uint64_t of_groups() {
  std::uint64_t least = kNoLimit;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/a/b", or "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (kinds.empty())
      least = std::min(least, of_group("/sys/fs/cgroup", path, "memory.max"));
    else if (("," + kinds + ",").find(",memory,") != std::string::npos)
      least = std::min(least, of_group("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return least;
}

}  // namespace

std::uint64_t available_memory() {
  return std::min({of_system(), of_process(RLIMIT_DATA), of_process(RLIMIT_AS), of_groups()});
}

}  // namespace cudp
