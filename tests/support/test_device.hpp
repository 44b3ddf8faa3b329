#pragma once
// CUDA engines for tests: under the emulator, or on a device in cudp_gpu_tests.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/cuda/layout.hpp"
#ifdef CUDP_TEST_ON_GPU
#include "runtime/device/cuda/devices.hpp"
#else
#include "runtime/device/cuda/device_engine.hpp"
#include "tests/support/emulated_gpu.hpp"
#endif

namespace cudp {

/// Of the emulator; a device is as it is.
struct TestDevice {
  unsigned seed = 1;
  std::size_t shared_bytes = std::size_t{48} * 1024;
};

#ifdef CUDP_TEST_ON_GPU

inline std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s) {
  return make_cuda_engine(net, s);
}
/// Without fused kernels; dense layers with as many weights go to BLAS.
inline std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                                 std::int64_t large_dense = cuda::kLargeDense,
                                                 const TestDevice& = {}) {
  return make_layer_wise_cuda_engine(net, s, large_dense);
}

#else

inline std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s) {
  return std::make_unique<cuda::DeviceEngine<EmulatedGpu>>(EmulatedGpu(), net, s);
}
inline std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                                 std::int64_t large_dense = cuda::kLargeDense,
                                                 const TestDevice& d = {}) {
  return std::make_unique<cuda::DeviceEngine<EmulatedGpu>>(
      EmulatedGpu(d.seed, {.multiprocessors = 3, .shared_bytes = d.shared_bytes}), net, s,
      large_dense, false);
}

#endif

}  // namespace cudp
