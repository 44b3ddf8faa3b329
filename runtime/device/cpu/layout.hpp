#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/cpu/layer.hpp"

namespace cudp::cpu {

/// Range of floats in the memory of one example's activations. CpuLayout::zeros lists those that
/// must be 0.
struct ValueRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Layers of a network on the CPU, and the layout of the memory that threads need for them.
struct CpuLayout {
  const Network* network = nullptr;
  /// Maximum number of examples that a thread processes in one call: 16, or 64 for networks with
  /// large dense layers, because the sums of their gradients are limited by memory bandwidth.
  /// Results do not depend on it.
  int chunk = 16;
  int min_in_flight = 1;  ///< largest CpuLayer::min_in_flight() of the layers
  Storage storage;
  std::vector<CpuEdge> edges;                     ///< the last edge has the logits
  std::vector<std::unique_ptr<CpuLayer>> layers;  ///< the input, then the network's layers
  /// Parts of an example's activations that layers expect to be zero and that no layer writes:
  /// borders of images, padding channels of the input, and padding at the end of an array. They are
  /// set to zero before the forward pass of every example.
  std::vector<ValueRange> zeros;
  std::size_t first_together = 0;    ///< first layer that processes all examples in flight together
  std::size_t first_parametric = 0;  ///< first layer that is trained; backward stops there
};

/// Makes the layers and the memory layout of a network. Keeps a pointer to `network`. Throws Error
/// if the network is too large for 32-bit offsets.
CpuLayout build_layout(const Network& network);

}  // namespace cudp::cpu
