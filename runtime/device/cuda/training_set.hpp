#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Sorts the positions of a text's words by word: writes the sorted positions to order [length].
/// words: the words of the text, as indices in the vocabulary.
inline void sort_words(const std::uint16_t* words, std::uint16_t length, std::uint16_t* order) {
  std::iota(order, order + length, std::uint16_t{0});
  std::ranges::stable_sort(order, order + length, {}, [&](std::uint16_t t) { return words[t]; });
}

/// How a training set is used, which determines the arrays that are copied to the device.
struct TrainingSetUse {
  /// Whether to copy also the positions of each text sorted by word, which are needed to train an
  /// embedding.
  bool sorts_words = false;
  std::span<const float> class_weights = {};  ///< EngineSettings::class_weights
  bool holds_rows = true;  ///< false: copy only public properties; the rows stay on the host
};

/// The training set in device memory. Has a copy of the rows or, if TrainingSetUse::holds_rows is
/// false, only the properties that are public: the scale of the features, class weights, word
/// vectors, and the layout of table rows.
class DeviceTrainingSet {
 public:
  DeviceTrainingSet() = default;
  /// Copies the training set to the device. Table rows in compact form (CodedRows) stay in that
  /// form. Throws InputError if the rows are in a file that cannot be read. train: the training
  /// set. use: determines which arrays are copied.
  DeviceTrainingSet(Gpu& gpu, const Dataset& train, const TrainingSetUse& use = {})
      : size_(train.size()),
        first_(train.size() > 0 ? static_cast<std::int64_t>(train.first) : 0),
        number_feature_(filled<std::int32_t>(
            gpu, train.is_coded() ? train.layout->number_feature : std::vector<std::int32_t>())),
        class_weights_(filled<float>(gpu, use.class_weights)),
        vectors_(train.vectors != nullptr ? filled<float>(gpu, train.vectors->values)
                                          : Buffer<float>()) {
    data_.class_weights = class_weights_.get();
    data_.texts.vectors = vectors_.get();
    data_.scale = train.scale;
    data_.shift = train.shift;
    if (train.is_coded()) data_.coded = train.layout->view(nullptr);
    data_.coded.number_feature = number_feature_.get();
    if (use.holds_rows) copy_rows(gpu, train, use.sorts_words);
  }

  std::size_t size() const { return size_; }
  /// Returns the index of the first example in the whole training set, of which this object may
  /// have one rank's (process's) range.
  std::int64_t first() const { return first_; }
  const DeviceData& data() const { return data_; }

 private:
  template <class T>
  static Buffer<T> filled(Gpu& gpu, std::span<const T> from) {
    Buffer<T> b(gpu, from.size());
    b.upload(from);
    return b;
  }

  void copy_rows(Gpu& gpu, const Dataset& train, bool sorts_words) {
    labels_ = filled<std::uint8_t>(gpu, train.labels);
    targets_ = filled<float>(gpu, train.targets);
    lengths_ = filled<std::uint16_t>(gpu, train.lengths);
    if (train.rows == nullptr) {
      bytes_ = filled<std::uint8_t>(gpu, train.byte_values());
      floats_ = filled<float>(gpu, train.float_values());
      coded_ = filled<std::uint8_t>(gpu, train.coded);
      tokens_ = filled<std::uint16_t>(gpu, train.tokens);
      if (sorts_words) order_ = filled<std::uint16_t>(gpu, word_order(train));
    } else {
      copy_file(gpu, train, sorts_words);
    }
    data_.bytes = bytes_.get();
    data_.floats = floats_.get();
    data_.coded.rows = coded_.get();
    data_.labels = labels_.get();
    data_.targets = targets_.get();
    data_.texts.tokens = tokens_.get();
    data_.texts.lengths = lengths_.get();
    data_.texts.order = order_.get();
  }

  /// Copies features from a file to the device, in parts of at most 32 MiB. sorts_words: whether an
  /// embedding is trained, which needs the positions of each text sorted by word.
  void copy_file(Gpu& gpu, const Dataset& train, bool sorts_words) {
    constexpr std::size_t kBytes = std::size_t{1} << 25;
    const auto [numbers, coded] = widths_of(train);
    const std::size_t n = train.size();
    if (train.is_coded())
      coded_ = {gpu, n * coded};
    else if (train.is_text())
      tokens_ = {gpu, n * numbers};
    else if (train.is_bytes())
      bytes_ = {gpu, n * numbers};
    else
      floats_ = {gpu, n * numbers};
    if (sorts_words) order_ = {gpu, n * numbers};
    const std::size_t at_once = std::max<std::size_t>(1, kBytes / feature_bytes(train));
    FetchedExamples fetched;
    std::vector<std::uint32_t> which(std::min(at_once, n));
    for (std::size_t at = 0; at < n; at += at_once) {
      which.resize(std::min(at_once, n - at));
      std::iota(which.begin(), which.end(), static_cast<std::uint32_t>(at));
      const Dataset& part = fetched.fetch(train, which);
      bytes_.upload(part.bytes, at * numbers);
      floats_.upload(part.floats, at * numbers);
      coded_.upload(part.coded, at * coded);
      tokens_.upload(part.tokens, at * numbers);
      if (sorts_words) order_.upload(word_order(part), at * numbers);
    }
  }

  static std::vector<std::uint16_t> word_order(const Dataset& train) {
    const auto places = static_cast<std::size_t>(train.shape.size());
    std::vector<std::uint16_t> order(train.tokens.size());
    for (std::size_t e = 0; e < train.size(); ++e)
      sort_words(train.tokens.data() + e * places, train.lengths[e], order.data() + e * places);
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
