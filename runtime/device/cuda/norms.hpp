#pragma once
#include <cstdint>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Stored gradient norms of all training examples, for importance sampling. Keeps a reference to
/// `parts`.
class DeviceNorms {
 public:
  explicit DeviceNorms(EngineParts& parts)
      : p_(parts), count_(parts.gpu, 1), total_(parts.gpu, 1) {}

  /// Adapts to another training set. Call after it has been loaded.
  void reset();
  void measure();
  /// Returns the sum of the stored norms; see Engine::norm_total. No single norm leaves the device.
  std::uint64_t total(double max_norm, double grid);

 private:
  void measure_all();

  EngineParts& p_;
  Buffer<std::uint32_t> count_;  // [1], number of all examples
  Buffer<unsigned long long> total_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
