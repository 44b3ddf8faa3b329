#pragma once
#include <cstddef>
#include <string>
#include <vector>

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

/// True if this build has the CUDA backend.
bool built_with_cuda();

}  // namespace cudp
