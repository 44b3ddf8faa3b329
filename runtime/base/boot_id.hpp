#pragma once
#include <string>

namespace cudp {

/// Returns a random text that the operating system makes each time the machine starts; "" if it is
/// not known. If the text is the same as before, the machine has not restarted in between, so files
/// that were written but not synced to disk are intact.
std::string boot_id();

}  // namespace cudp
