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

  /// Uploads the number of examples. Call after another training set has been loaded.
  void reset();
  void measure();
  /// Returns the sum of the stored norms as a multiple of `grid`. Each norm is limited to max_norm
  /// and then rounded down to a multiple of `grid`. No single norm leaves the device.
  std::uint64_t total(double max_norm, double grid);

 private:
  void measure_all();

  EngineParts& p_;
  Buffer<std::uint32_t> count_;  // [1], number of all examples
  Buffer<unsigned long long> total_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
