#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/device/cpu/layer.hpp"

namespace cudp::cpu {

/// A network laid out for the CPU.
struct CpuLayout {
  const Network* network = nullptr;
  /// Most examples that a task handles: 16, or 64 for networks of large dense layers, whose sums
  /// are bound by memory traffic. Results do not depend on it.
  int chunk = 16;
  int least_in_flight = 1;  ///< see CpuLayer
  Storage storage;
  std::vector<CpuEdge> edges;                     ///< the last has the logits
  std::vector<std::unique_ptr<CpuLayer>> layers;  ///< the input, then the network's
  std::size_t first_together = 0;    ///< layers from here pass over all examples in flight
  std::size_t first_parametric = 0;  ///< backward stops here
};

/// Keeps a pointer to `network`. Throws Error where 32-bit offsets do not reach.
CpuLayout build_layout(const Network& network);

}  // namespace cudp::cpu
