#pragma once
// The logits of a data set.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/training_set.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The examples that were asked about last stay in device memory, so that a test set is uploaded
/// once. They are known again by what they are: the host compares all of it, which is several times
/// faster than an upload.
class DeviceEvaluation {
 public:
  /// Data sets of up to so many bytes on the device are kept.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  explicit DeviceEvaluation(EngineParts& parts) : p_(parts) {}

  /// The logits of examples at the present parameters, [examples, outputs]. It waits once where the
  /// examples are those of the call before. After LayerWiseNetwork::reserve() where nothing is
  /// fused.
  std::vector<float> logits(const Dataset& examples);

 private:
  /// Bytes of an example on the device, but for its label.
  static std::size_t example_bytes(const Dataset& d);

  /// Uploads the examples unless they are there.
  void hold(const Dataset& examples);
  bool is_held(const Dataset& d) const;

  EngineParts& p_;
  Dataset held_;  // what is on the device
  DeviceTrainingSet on_device_;
  Buffer<std::uint32_t> count_;  // [1], examples held
};

}  // namespace cudp::cuda::inline CUDP_SIMT
