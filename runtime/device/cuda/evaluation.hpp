#pragma once
// Evaluation of a model on a data set, on the device.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/training_set.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Computes the logits of data sets. The examples of the last call stay in device memory, so a test
/// set that is evaluated repeatedly is uploaded only once. To recognise them, the host compares the
/// given examples with a copy of its own, which is several times faster than an upload.
class DeviceEvaluation {
 public:
  /// Largest data set that is kept in device memory after it has been evaluated [bytes].
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  /// Size of the parts in which features are read from a file [bytes].
  static constexpr std::size_t kFileBytes = std::size_t{1} << 25;

  explicit DeviceEvaluation(EngineParts& parts) : p_(parts) {}

  /// Returns the logits of the examples with the current parameters, [examples, outputs]. Waits for
  /// the device once if the examples are the same as in the previous call; an upload waits, too. If
  /// the network is not computed by a fused kernel, requires that LayerWiseNetwork::reserve() has
  /// allocated memory.
  std::vector<float> logits(const Dataset& examples);

 private:
  /// Uploads the examples unless they are already on the device.
  void upload(const Dataset& examples);
  bool is_uploaded(const Dataset& d) const;

  EngineParts& p_;
  Dataset uploaded_;  // copy of the data set on the device
  DeviceTrainingSet on_device_;
  Buffer<std::uint32_t> count_;  // [1], number of examples on the device
};

}  // namespace cudp::cuda::inline CUDP_SIMT
