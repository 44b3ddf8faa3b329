#pragma once
#include <cstdint>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The norms of the gradients of all training examples, as last seen. Keeps a reference to the
/// parts.
class DeviceNorms {
 public:
  explicit DeviceNorms(EngineParts& parts)
      : p_(parts), count_(parts.gpu, 1), total_(parts.gpu, 1) {}

  /// Resets the state. Call after another training set has been loaded.
  void start_anew();
  void measure();
  /// Returns the sum of the norms. No single norm leaves the device. See Engine::norm_total.
  std::uint64_t total(double max_norm, double grid);

 private:
  EngineParts& p_;
  Buffer<std::uint32_t> count_;  // [1], number of all examples
  Buffer<unsigned long long> total_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
