#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/engine.hpp"

namespace cudp {

/// Properties of a CUDA device.
struct DeviceInfo {
  std::string name;
  int major = 0;  ///< major number of the compute capability
  int minor = 0;
  std::size_t memory = 0;  ///< total size of its memory [bytes]
  int multiprocessors = 0;

  std::string compute_capability() const {
    return std::to_string(major) + "." + std::to_string(minor);
  }
};

/// Returns the CUDA devices visible to this process. The list is empty without a driver, or in a
/// build without CUDA.
std::vector<DeviceInfo> cuda_devices();

/// Initialises a CUDA device for this process, so that the first work on it is faster. It takes
/// some tenths of a second and may be called by any thread. number: index of the device in
/// cuda_devices().
void open_cuda_device(int number);

/// For tests and benchmarks: creates a CUDA engine that computes every network layer by layer,
/// never by a fused kernel (the whole network in one launch). large_dense: minimum number of
/// weights for which a dense layer uses BLAS.
std::unique_ptr<Engine> make_layer_wise_cuda_engine(const Network& network,
                                                    const EngineSettings& settings,
                                                    std::int64_t large_dense);

/// Returns the precision (fp32 or TF32) of the matrix products in a CUDA engine for this network.
/// requested: the user's setting. transforms: whether clipping is coordinate-wise. device: number
/// of the device, which must exist.
Precision cuda_precision(const Network& network, Precision requested, bool transforms,
                         int device = 0);

/// Returns a text that identifies the libraries that affect the bits of a run's results on this
/// device: the versions of cuBLAS and cuFFT, and the properties by which they choose their kernels
/// (the number of multiprocessors and NVIDIA_TF32_OVERRIDE). Empty if the network cannot use cuBLAS
/// and no scattering features are computed by cuFFT. scatters: whether scattering features are
/// computed.
std::string cuda_library_arithmetic(const DeviceInfo& device, const Network& network,
                                    bool scatters);

/// Throws InputError if cuDNN cannot be used. The option --evaluate-with cudnn requires it.
void require_cudnn();

/// Returns whether this build has the CUDA backend.
bool built_with_cuda();

}  // namespace cudp
