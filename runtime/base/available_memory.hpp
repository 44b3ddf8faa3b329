#pragma once
#include <cstdint>

namespace cudp {

/// Returns how much memory this process can fill [bytes] without taking it from other processes:
/// the minimum of what the system states as available and of the limits on the process and its
/// control groups.
std::uint64_t available_memory();

}  // namespace cudp
