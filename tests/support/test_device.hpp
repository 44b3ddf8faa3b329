#pragma once
// CUDA engines for tests: under the emulator, or on a device in cudp_gpu_tests. They are made in
// test_device.cpp alone, because all kernels of the emulator take minutes to compile.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cuda/plans.hpp"
#include "runtime/device/engine.hpp"

namespace cudp {

/// What an engine asks a device for.
struct DeviceLog {
  std::vector<std::string> launches;  ///< by name, those of replayed recordings too
  int recordings = 0;
  int waits = 0;      ///< copies that the host waits for
  int rank_sums = 0;  ///< over all ranks, on the device
};

/// What an emulated device says, and does, of sums over ranks.
struct RankSumsOfTest {
  std::string refusal = "an emulated device has no NCCL";
  std::string library = "NCCL's twin";
  std::string device{};  ///< empty: one of its own for each process
  bool may_share = false;
  std::string fails{};             ///< what is wrong when the ranks come together
  std::size_t words_left_out = 0;  ///< of each sum
};

/// Of the emulator; a device is as it is.
struct TestDevice {
  unsigned seed = 1;
  std::size_t shared_bytes = std::size_t{48} * 1024;
  /// Examples for which the recorded step says that it has space; 0: as many as it has.
  std::uint32_t batch_capacity = 0;
  int multiprocessors = 3;
  std::size_t memory = std::size_t{4} << 30;  ///< bytes
  bool blas_by_place = false;      ///< whether a row of its products depends on where the row lies
  std::size_t failing_launch = 0;  ///< the number of a launch that fails, from 1; 0: none
  RankSumsOfTest sums{};
  DeviceLog* log = nullptr;  ///< outlives the engine; null for none
  /// Whether kernels are run, or only logged: results are then arbitrary, and a batch empty.
  bool runs = true;
};

/// As `cudp train` has it: by a fused kernel where the network has one that fits the device.
std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s,
                                      const TestDevice& = {});
/// The same; throws std::runtime_error where that is not a fused kernel.
std::unique_ptr<Engine> fused_engine(const Network& net, const EngineSettings& s,
                                     const TestDevice&);
/// Without fused kernels; dense layers with as many weights go to BLAS.
std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                          std::int64_t large_dense = cuda::kLargeDense,
                                          const TestDevice& = {});

}  // namespace cudp
