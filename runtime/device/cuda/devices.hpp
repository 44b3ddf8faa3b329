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

/// Initialises a device of cuda_devices() for this process, so that its first use need not. This
/// takes some tenths of a second. Any thread may call it.
void open_cuda_device(int number);

/// Creates a CUDA engine that uses no fused kernels (fused.hpp), for tests and benchmarks.
/// large_dense: number of weights from which a dense layer uses BLAS.
std::unique_ptr<Engine> make_layer_wise_cuda_engine(const Network& network,
                                                    const EngineSettings& settings,
                                                    std::int64_t large_dense);

/// Returns the precision in which make_cuda_engine multiplies the matrices of a network if
/// `requested` is requested. transforms: whether clipping is coordinate-wise. Requires a device.
Precision cuda_precision(const Network& network, Precision requested, bool transforms,
                         int device = 0);

/// Returns what Backend::arithmetic_name says of cuBLAS and cuFFT, for a run on the device whose
/// network may use cuBLAS or whose features cuFFT computes: versions, multiprocessors, which the
/// choice of their kernels follows, and NVIDIA_TF32_OVERRIDE. Empty if it uses neither.
std::string cuda_library_arithmetic(const DeviceInfo& device, const Network& network,
                                    bool scatters);

/// Checks that cuDNN can be used, which --evaluate-with requires. Throws InputError if not.
void require_cudnn();

/// Whether this build has the CUDA backend.
bool built_with_cuda();

}  // namespace cudp
