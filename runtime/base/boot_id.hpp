#pragma once
#include <string>

namespace cudp {

/// Returns a text that the machine's kernel drew at its start, and that stays the same until the
/// next start; "" if it is not known. As long as it is the same, files that were written and not
/// synced have lost nothing.
std::string boot_id();

}  // namespace cudp
