#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// A training set in device memory.
class DeviceTrainingSet {
 public:
  DeviceTrainingSet() = default;
  /// Copies the training set to the device. Rows of a table stay coded. sorts_words: whether an
  /// embedding is trained, which needs the words of each text in sorted order. class_weights: see
  /// EngineSettings.
  DeviceTrainingSet(Gpu& gpu, const Dataset& train, bool sorts_words = false,
                    std::span<const float> class_weights = {})
      : size_(train.size()),
        first_(train.size() > 0 ? static_cast<std::int64_t>(train.first) : 0),
        bytes_(filled<std::uint8_t>(gpu, train.byte_values())),
        floats_(filled<float>(gpu, train.float_values())),
        coded_(filled<std::uint8_t>(gpu, train.coded)),
        number_feature_(filled<std::int32_t>(
            gpu, train.is_coded() ? train.layout->number_feature : std::vector<std::int32_t>())),
        labels_(filled<std::uint8_t>(gpu, train.labels)),
        targets_(filled<float>(gpu, train.targets)),
        class_weights_(filled<float>(gpu, class_weights)),
        tokens_(filled<std::uint16_t>(gpu, train.tokens)),
        lengths_(filled<std::uint16_t>(gpu, train.lengths)),
        order_(filled<std::uint16_t>(
            gpu, sorts_words ? word_order(train) : std::vector<std::uint16_t>())),
        vectors_(train.vectors != nullptr ? filled<float>(gpu, train.vectors->values)
                                          : Buffer<float>()),
        data_{.bytes = bytes_.get(),
              .floats = floats_.get(),
              .coded = train.is_coded() ? train.layout->view(coded_.get()) : CodedRows{},
              .labels = labels_.get(),
              .targets = targets_.size() > 0 ? targets_.get() : nullptr,
              .class_weights = class_weights_.size() > 0 ? class_weights_.get() : nullptr,
              .texts = {.tokens = tokens_.get(),
                        .lengths = lengths_.get(),
                        .order = order_.get(),
                        .vectors = vectors_.get()},
              .scale = train.scale,
              .shift = train.shift} {
    data_.coded.number_feature = number_feature_.get();
  }

  std::size_t size() const { return size_; }
  /// Index of the first example in the training set of all ranks together.
  std::int64_t first() const { return first_; }
  const DeviceData& data() const { return data_; }

 private:
  template <class T>
  static Buffer<T> filled(Gpu& gpu, std::span<const T> from) {
    Buffer<T> b(gpu, from.size());
    b.upload(from);
    return b;
  }

  /// Returns the positions of each text's words, sorted by word id (device::Texts::order).
  static std::vector<std::uint16_t> word_order(const Dataset& train) {
    const auto places = static_cast<std::size_t>(train.shape.size());
    std::vector<std::uint16_t> order(train.tokens.size());
    for (std::size_t e = 0; e < train.size(); ++e) {
      const std::uint16_t* const words = train.tokens.data() + e * places;
      const auto own = std::span(order).subspan(e * places, train.lengths[e]);
      std::iota(own.begin(), own.end(), std::uint16_t{0});
      std::ranges::stable_sort(own, {}, [&](std::uint16_t t) { return words[t]; });
    }
    return order;
  }

  std::size_t size_ = 0;
  std::int64_t first_ = 0;
  Buffer<std::uint8_t> bytes_;
  Buffer<float> floats_;
  Buffer<std::uint8_t> coded_;
  Buffer<std::int32_t> number_feature_;
  Buffer<std::uint8_t> labels_;
  Buffer<float> targets_;
  Buffer<float> class_weights_;
  Buffer<std::uint16_t> tokens_;
  Buffer<std::uint16_t> lengths_;
  Buffer<std::uint16_t> order_;
  Buffer<float> vectors_;
  DeviceData data_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
