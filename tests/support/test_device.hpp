#pragma once
// CUDA engines for tests: under the emulator, or on a device in cudp_gpu_tests. They are defined in
// test_device.cpp alone, because the kernels of the emulator take minutes to compile.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cuda/plans.hpp"
#include "runtime/device/engine.hpp"

namespace cudp {

/// Log of an engine's calls to a device.
struct DeviceLog {
  /// Names of the launched kernels, including those of replayed recordings.
  std::vector<std::string> launches;
  int recordings = 0;
  int waits = 0;      ///< number of copies that the host waits for
  int rank_sums = 0;  ///< number of sums over ranks on the device
};

/// Behaviour of an emulated device with respect to sums over ranks.
struct RankSumsOfTest {
  std::string refusal = "an emulated device has no NCCL";
  std::string library = "NCCL's twin";
  std::string device{};  ///< identifier of the device; empty: a different one for each process
  bool may_share = false;
  std::string fails{};             ///< error when the ranks are joined; empty: none
  std::size_t words_left_out = 0;  ///< number of words that are left out of each sum
};

/// Properties of the emulated device. A real device ignores them.
struct TestDevice {
  unsigned seed = 1;
  std::size_t shared_bytes = std::size_t{48} * 1024;
  /// Capacity that the recorded step reports, in examples; 0: its real capacity.
  std::uint32_t batch_capacity = 0;
  int multiprocessors = 3;
  std::size_t memory = std::size_t{4} << 30;  ///< bytes
  /// Whether the result of a row of a product depends on the position of the row.
  bool blas_by_place = false;
  std::size_t failing_launch = 0;  ///< number of the launch that fails, from 1; 0: none
  RankSumsOfTest sums{};
  DeviceLog* log = nullptr;  ///< outlives the engine; null for none
  /// Whether kernels are run. If false they are only logged, results are arbitrary, and the batch
  /// is empty.
  bool runs = true;
};

/// Makes the engine of `cudp train`: with a fused kernel if the network has one that fits the
/// device.
std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s,
                                      const TestDevice& = {});
/// Makes the same engine. Throws std::runtime_error if it has no fused kernel.
std::unique_ptr<Engine> fused_engine(const Network& net, const EngineSettings& s,
                                     const TestDevice&);
/// Makes an engine without fused kernels. Dense layers with at least `large_dense` weights use
/// BLAS.
std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                          std::int64_t large_dense = cuda::kLargeDense,
                                          const TestDevice& = {});

}  // namespace cudp
