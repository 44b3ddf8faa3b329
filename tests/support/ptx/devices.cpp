// Devices as they state themselves (the CUDA programming guide's table of compute capabilities).
#include <algorithm>

#include "tests/support/ptx/interpreter.hpp"

namespace cudp::ptx {

const Device& device_named(std::string_view name) {
  constexpr u64 gigabyte = u64{1} << 30;
  static const Device devices[] = {
      {"H100", 9, 0, 132, 228 * 1024, 227 * 1024, 2048, 32, 80 * gigabyte},
      {"A100", 8, 0, 108, 164 * 1024, 163 * 1024, 2048, 32, 80 * gigabyte},
      {"L4", 8, 9, 58, 100 * 1024, 99 * 1024, 1536, 24, 24 * gigabyte},
  };
  for (const Device& d : devices)
    if (d.name == name) return d;
  throw std::invalid_argument("no device is known as " + std::string(name) +
                              "; there are H100, A100 and L4");
}

u32 blocks_in_flight(const Device& device, const Kernel& kernel, u32 threads, u32 dynamic_shared) {
  const u32 shared = kernel.static_shared_bytes + dynamic_shared;
  if (threads == 0 || threads > kernel.max_threads || shared > device.shared_per_block) return 0;
  const u32 whole_warps = (threads + kLanes - 1) / kLanes * kLanes;
  const u32 kept_by_the_system = 1024;  // for each block, from compute capability 8 on
  const u32 taken = (shared + kept_by_the_system + 127) / 128 * 128;
  return std::min({device.blocks_per_multiprocessor,
                   device.threads_per_multiprocessor / whole_warps,
                   device.shared_per_multiprocessor / taken});
}

}  // namespace cudp::ptx
