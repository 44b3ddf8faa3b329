#pragma once
// A CUDA runtime in place of libcudart, for objects as nvcc makes them: their PTX is run by the
// interpreter, on a device that the environment states. What it refuses, and which errors it
// returns, is as the CUDA runtime's documentation has it; a function that is not here is not
// linked.
//
//   CUDP_PTX_DEVICE=H100|A100|L4  what the device states of itself (default H100)
//   CUDP_PTX_SEED=N               which order of warps and blocks is taken (default 1)
//   CUDP_PTX_LAUNCHES=FILE        at the end a line is added for every kernel: how often it was
//                                 launched, the number of its module, its name
//   CUDP_PTX_SAVE=FOLDER          at the end the PTX of all modules is there: 0.ptx, 1.ptx, ...
//   CUDP_PTX_REPLACE=FOLDER       PTX of the same names is run instead: mutants
//
// At the end of the process a line on stderr says what was run. After a fault the device is lost,
// as a real one is; and if there was a fault or a note, the process ends with kPtxFault.
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

#include "tests/support/ptx/history.hpp"
#include "tests/support/ptx/interpreter.hpp"

namespace cudp::ptx {

/// Exit code of a process with a fault or note that would otherwise have ended with 0.
inline constexpr int kPtxFault = 70;

/// A copy, a fill or a library function in a stream, while it runs.
class StreamWork {
 public:
  StreamWork(DeviceMemory& memory, const KnownOperations& order, const Toucher& who)
      : memory_(memory), order_(order), who_(who) {}

  /// Returns n numbers on the device, which the operation reads or writes, as memory of this
  /// process. Throws Fault if they are not on the device, or if the operation is not ordered after
  /// earlier accesses.
  template <class T>
  const T* reads(const T* p, std::size_t n, const std::string& what) const {
    return static_cast<const T*>(bytes(p, n * sizeof(T), Access::read, what));
  }
  template <class T>
  T* writes(T* p, std::size_t n, const std::string& what) const {
    return static_cast<T*>(bytes(p, n * sizeof(T), Access::write, what));
  }

 private:
  void* bytes(const void* p, std::size_t n, Access kind, const std::string& what) const;

  DeviceMemory& memory_;
  const KnownOperations& order_;
  const Toucher& who_;
};

/// Runs `work` in a stream, or records it during a capture. For functions of libraries.
cudaError_t enqueue(cudaStream_t stream, std::function<void(const StreamWork&)> work);

}  // namespace cudp::ptx
