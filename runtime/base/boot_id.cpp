#include "runtime/base/boot_id.hpp"

#include <fstream>

namespace cudp {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace cudp
