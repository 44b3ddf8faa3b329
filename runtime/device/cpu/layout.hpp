#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/cpu/layer.hpp"

namespace cudp::cpu {

/// Range of floats in the memory of one example's activations.
struct ValueRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Layers of a network on the CPU, and the layout of their memory.
struct CpuLayout {
  const Network* network = nullptr;
  /// Maximum number of examples that a thread takes at a time: 16, or 64 for networks of large
  /// dense layers, whose sums are limited by memory bandwidth. Results do not depend on it.
  int chunk = 16;
  int min_in_flight = 1;  ///< largest CpuLayer::min_in_flight() of the layers
  Storage storage;
  std::vector<CpuEdge> edges;                     ///< the last edge has the logits
  std::vector<std::unique_ptr<CpuLayer>> layers;  ///< the input, then the network's layers
  /// Ranges that layers read as zero and no layer writes: borders, the input's padding channels,
  /// and the floats after an edge's last pixel. forward() clears them for every example, so that
  /// nothing depends on the previous content of the example's memory.
  std::vector<ValueRange> zeros;
  std::size_t first_together = 0;    ///< first layer that processes all examples in flight together
  std::size_t first_parametric = 0;  ///< first layer that is trained; backward stops there
};

/// Makes the layout. Keeps a pointer to `network`. Throws Error if 32-bit offsets are too small.
CpuLayout build_layout(const Network& network);

}  // namespace cudp::cpu
