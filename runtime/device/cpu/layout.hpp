#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/cpu/layer.hpp"

namespace cudp::cpu {

/// Floats of one example's activations.
struct ValueRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// A network laid out for the CPU.
struct CpuLayout {
  const Network* network = nullptr;
  /// Most examples that a task handles: 16, or 64 for networks of large dense layers, whose sums
  /// are bound by memory traffic. Results do not depend on it.
  int chunk = 16;
  int min_in_flight = 1;  ///< see CpuLayer
  Storage storage;
  std::vector<CpuEdge> edges;                     ///< the last has the logits
  std::vector<std::unique_ptr<CpuLayer>> layers;  ///< the input, then the network's
  /// The numbers that layers read as zero and none writes: borders, the input's padding channels,
  /// and what lies behind an edge's last pixel. forward() clears it for every example, so that
  /// nothing of an example depends on what was in its memory before.
  std::vector<ValueRange> zeros;
  std::size_t first_together = 0;    ///< layers from here pass over all examples in flight
  std::size_t first_parametric = 0;  ///< backward stops here
};

/// Keeps a pointer to `network`. Throws Error where 32-bit offsets do not reach.
CpuLayout build_layout(const Network& network);

}  // namespace cudp::cpu
