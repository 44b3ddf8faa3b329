#pragma once
// The logits of a data set.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/training_set.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The examples that were asked about last stay in device memory, so that a test set is uploaded
/// once. They are known again by what they are: the host compares all of it, which is several times
/// faster than an upload.
class DeviceEvaluation {
 public:
  /// Data sets of up to so many bytes on the device are kept.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  /// The logits of examples, [examples, outputs]. It waits once where the examples are those of the
  /// call before.
  /// forward(count, n, data, to): makes those of examples 0 .. n - 1 of device data, to [n,
  /// outputs]; count [1] is n.
  template <class Forward>
  std::vector<float> logits(Gpu& gpu, int outputs, const Dataset& examples,
                            const Forward& forward) {
    if (examples.size() == 0) return {};
    const auto row = static_cast<std::size_t>(outputs);
    const std::size_t fit = std::max<std::size_t>(1, kMaxBytes / example_bytes(examples));
    std::vector<float> all;
    all.reserve(examples.size() * row);
    for (std::size_t at = 0; at < examples.size(); at += fit) {
      const std::size_t n = std::min(fit, examples.size() - at);
      if (n == examples.size()) {
        hold(gpu, examples);
      } else {
        Dataset part = empty_like(examples);
        for (std::size_t i = 0; i < n; ++i) append_example(examples, at + i, part);
        hold(gpu, part);
      }
      Buffer<float> to(gpu, n * row);
      forward(count_.get(), n, on_device_.data(), to.get());
      const std::vector<float> logits = to.download();
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

 private:
  /// Bytes of an example on the device, but for its label.
  static std::size_t example_bytes(const Dataset& d) {
    if (d.is_coded()) return static_cast<std::size_t>(d.layout->row_bytes());
    return static_cast<std::size_t>(d.shape.size()) * (d.is_bytes() ? 1 : sizeof(float));
  }

  /// Uploads the examples unless they are there.
  void hold(Gpu& gpu, const Dataset& examples) {
    if (is_held(examples)) return;
    on_device_ = {};
    held_ = {};
    on_device_ = {gpu, examples};
    const auto count = static_cast<std::uint32_t>(examples.size());
    count_ = {gpu, 1};
    count_.upload({&count, 1});
    held_ = examples;
  }
  bool is_held(const Dataset& d) const {
    return held_.size() == d.size() && held_.scale == d.scale && held_.shift == d.shift &&
           held_.layout == d.layout && held_.bytes == d.bytes && held_.coded == d.coded &&
           held_.labels == d.labels && held_.tokens == d.tokens && held_.lengths == d.lengths &&
           held_.vectors == d.vectors && held_.floats.size() == d.floats.size() &&
           (d.floats.empty() ||  // bits: numbers may be NaN
            std::memcmp(held_.floats.data(), d.floats.data(), d.floats.size() * sizeof(float)) ==
                0);
  }

  Dataset held_;  // what is on the device
  DeviceTrainingSet on_device_;
  Buffer<std::uint32_t> count_;  // [1], examples held
};

}  // namespace cudp::cuda::inline CUDP_SIMT
