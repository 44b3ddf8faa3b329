#pragma once
#include <string>

namespace cudp {

/// Returns a random text that the operating system made when this machine was started; "" if it is
/// not known. As long as it is the same, the machine has not restarted, so files that were written
/// but not synced to disk are intact.
std::string boot_id();

}  // namespace cudp
