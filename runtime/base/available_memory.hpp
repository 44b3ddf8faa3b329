#pragma once
#include <cstdint>

namespace cudp {

/// Returns how much memory this process can fill without taking it from others [bytes]: the least
/// of what the system states as available and of the limits of the process and its control groups.
std::uint64_t available_memory();

}  // namespace cudp
