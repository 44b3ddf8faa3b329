#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/engine.hpp"

namespace cudp {

struct DeviceInfo {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  std::size_t memory = 0;  ///< bytes
  int multiprocessors = 0;

  std::string compute_capability() const {
    return std::to_string(major) + "." + std::to_string(minor);
  }
};

/// The CUDA devices that this process sees; none without a driver, or in a build without CUDA.
std::vector<DeviceInfo> cuda_devices();

/// make_cuda_engine without fused kernels (fused.hpp): for tests and benchmarks.
/// large_dense: see layout.hpp.
std::unique_ptr<Engine> make_layer_wise_cuda_engine(const Network& network,
                                                    const EngineSettings& settings,
                                                    std::int64_t large_dense);

/// The precision that make_cuda_engine multiplies a network in where `requested` was asked for;
/// transforms: as Backend::precision has it. It needs a device.
Precision cuda_precision(const Network& network, Precision requested, bool transforms,
                         int device = 0);

/// Throws InputError where cuDNN, which --evaluate-with asks for, cannot be used.
void require_cudnn();

/// True if this build has the CUDA backend.
bool built_with_cuda();

}  // namespace cudp
