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

/// Computes logits of data sets. The examples of the last call stay in device memory, so a test set
/// is uploaded once. To recognise them, the host compares the given examples with a copy that it
/// keeps, which is several times faster than an upload.
class DeviceEvaluation {
 public:
  /// Largest data set that is kept on the device [bytes].
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  /// Size of the parts in which features are read from a file [bytes].
  static constexpr std::size_t kFileBytes = std::size_t{1} << 25;

  explicit DeviceEvaluation(EngineParts& parts) : p_(parts) {}

  /// Returns the logits of the examples at the current parameters, [examples, outputs]. Waits for
  /// the device; only once if the examples are those of the previous call. Requires
  /// LayerWiseNetwork::reserve() if the network is not fused.
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
