#pragma once
#include <cstdint>

namespace cudp {

/// Returns how much memory this process can fill without taking it from others [bytes]: the minimum
/// of what the system states as available and the limits of the process and its control groups.
std::uint64_t available_memory();

}  // namespace cudp
