#pragma once
#include <cstdint>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The norms of all training examples' gradients, as last seen. Keeps a reference to the parts.
class DeviceNorms {
 public:
  explicit DeviceNorms(EngineParts& parts)
      : p_(parts), count_(parts.gpu, 1), total_(parts.gpu, 1) {}

  /// To be called when another training set has been loaded.
  void start_anew();
  void measure();
  /// No norm leaves the device, but their sum. See Engine::norm_total.
  std::uint64_t total(double max_norm, double grid);

 private:
  EngineParts& p_;
  Buffer<std::uint32_t> count_;  // [1], all examples
  Buffer<unsigned long long> total_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
