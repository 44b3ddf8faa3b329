#pragma once
#include <cstdint>

namespace cudp {

/// Returns how much memory this process can still allocate [bytes] without taking it from other
/// processes: the minimum of what the operating system states as available, and of what the limits
/// on the process and its control groups leave.
std::uint64_t available_memory();

}  // namespace cudp
