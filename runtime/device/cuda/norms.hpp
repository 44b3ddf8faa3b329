#pragma once
#include <cstdint>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Gradient norms of all training examples, stored in device memory for importance sampling. Keeps
/// a reference to the parts of the engine.
class DeviceNorms {
 public:
  explicit DeviceNorms(EngineParts& parts)
      : p_(parts), count_(parts.gpu, 1), total_(parts.gpu, 1) {}

  /// Writes the number of examples to the device. Call it after another training set has been
  /// loaded.
  void reset();
  void measure();
  /// Returns the sum of the stored norms as an integer multiple of `grid`. Each norm is limited to
  /// max_norm and rounded down to a multiple of `grid` before it is added. The norms stay on the
  /// device; only their sum is copied to the host.
  std::uint64_t total(double max_norm, double grid);

 private:
  void measure_all();

  EngineParts& p_;
  Buffer<std::uint32_t> count_;  // [1], number of all examples
  Buffer<unsigned long long> total_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
