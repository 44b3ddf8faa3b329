#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda {

/// A training set in device memory.
template <class Gpu>
class DeviceTrainingSet {
 public:
  DeviceTrainingSet() = default;
  /// Rows of a table stay coded.
  DeviceTrainingSet(Gpu& gpu, const Dataset& train)
      : size_(train.size()),
        bytes_(filled<std::uint8_t>(gpu, train.bytes)),
        floats_(filled<float>(gpu, train.floats)),
        coded_(filled<std::uint8_t>(gpu, train.coded)),
        number_feature_(filled<std::int32_t>(
            gpu, train.is_coded() ? train.layout->number_feature : std::vector<std::int32_t>())),
        labels_(filled<std::uint8_t>(gpu, train.labels)),
        data_{.bytes = bytes_.get(),
              .floats = floats_.get(),
              .coded = train.is_coded() ? train.layout->view(coded_.get()) : CodedRows{},
              .labels = labels_.get(),
              .scale = train.scale,
              .shift = train.shift} {
    data_.coded.number_feature = number_feature_.get();
  }

  /// Examples.
  std::size_t size() const { return size_; }
  const DeviceData& data() const { return data_; }

 private:
  template <class T>
  static Buffer<Gpu, T> filled(Gpu& gpu, const std::vector<T>& from) {
    Buffer<Gpu, T> b(gpu, from.size());
    b.upload(from);
    return b;
  }

  std::size_t size_ = 0;
  Buffer<Gpu, std::uint8_t> bytes_;
  Buffer<Gpu, float> floats_;
  Buffer<Gpu, std::uint8_t> coded_;
  Buffer<Gpu, std::int32_t> number_feature_;
  Buffer<Gpu, std::uint8_t> labels_;
  DeviceData data_;
};

}  // namespace cudp::cuda
