#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/cpu/layer.hpp"

namespace cudp::cpu {

inline std::size_t to_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The network's weights in two copies. Each is in the order in which one kind of matrix product
/// reads them. All threads share the copies, which do not change during a step.
struct Weights {
  const float* packed = nullptr;  ///< Storage::packed floats, in the order of forward passes
  /// Second copy of the weights, Storage::transposed floats, in the order in which products read
  /// them that compute the gradient of a layer's input.
  const float* transposed = nullptr;
};

/// Arrays of coordinate-wise clipping (AdaCliP), which clips (gradient - m) / scale instead of the
/// gradient. m and scale have one number per parameter. The two arrays of `transform`, `square` and
/// `product` have Storage::packed elements each, in the order of Weights::packed. All arrays are
/// constant during a step.
struct Coordinates {
  Transform transform;             ///< m and 1 / scale
  const float* square;             ///< 1 / scale^2
  const float* product;            ///< m / scale^2
  std::span<const double> shifts;  ///< CpuLayer::coordinate_shift() of each trained layer
};

/// One thread's memory for the examples that it processes at once. Layers read and write it through
/// this class.
class Workspace {
 public:
  Workspace(const Storage& storage, int groups, int in_flight, const CpuKernels& cpu_kernels)
      : kernels(cpu_kernels),
        storage_(storage),
        groups_(groups),
        in_flight_(in_flight),
        values_(to_size(storage.values * in_flight)),
        gradients_(to_size(storage.gradients)),
        kept_gradients_(to_size(storage.kept_gradients * in_flight)),
        example_gradient_(to_size(storage.example_gradient)),
        saved_(to_size(storage.saved * in_flight)),
        numbers_(to_size(storage.numbers)),
        norms_(to_size(static_cast<std::int64_t>(groups) * in_flight)),
        factors_(norms_.size()) {}

  const CpuKernels& kernels;
  Weights weights;
  /// Arrays of coordinate-wise clipping; null if it is not used.
  const Coordinates* coordinates = nullptr;
  const Dataset* data = nullptr;
  std::span<const std::uint32_t> examples;  ///< indices in the data set of the examples in flight

  /// Returns the maximum number of examples that the thread processes at once.
  int in_flight() const { return in_flight_; }
  /// For tests: fills all memory with `value`. No code may read memory before it has written it, so
  /// results must not change.
  void fill(float value) {
    std::fill_n(values_.data(), values_.size(), value);
    std::fill_n(kept_gradients_.data(), kept_gradients_.size(), value);
    std::fill_n(saved_.data(), saved_.size(), value);
    std::fill_n(norms_.data(), norms_.size(), value);
    std::ranges::fill(factors_, value);
    std::fill_n(scratch_.data(), scratch_.size(), value);
    fill_example(value);
  }
  /// For tests: fills the memory that is used for one example at a time with `value`.
  void fill_example(float value) {
    std::fill_n(gradients_.data(), gradients_.size(), value);
    std::fill_n(example_gradient_.data(), example_gradient_.size(), value);
    std::ranges::fill(numbers_, std::bit_cast<std::int32_t>(value));
  }

  /// Returns the distance between consecutive examples in the array of activations [floats].
  std::int64_t value_stride() const { return storage_.values; }

  /// Returns the activations of all layers for one example, [Storage::values]. example: number
  /// among those that the thread processes at once.
  float* values(int example) { return values_.data() + storage_.values * example; }
  float* value(const CpuEdge& e, int example) { return values(example) + e.value; }
  float* gradient(const CpuEdge& e, int example) {
    return e.keeps_gradients
               ? kept_gradients_.data() + storage_.kept_gradients * example + e.gradient
               : gradients_.data() + e.gradient;
  }
  /// Returns the distance between consecutive examples in the array of values that layers save in
  /// forward() for backward() [floats].
  std::int64_t saved_stride() const { return storage_.saved; }
  float* saved(std::int64_t offset, int example) {
    return saved_.data() + storage_.saved * example + offset;
  }
  float* example_gradient(std::int64_t offset) { return example_gradient_.data() + offset; }

  std::int32_t* numbers(std::int64_t offset) { return numbers_.data() + offset; }

  /// Returns whether layers read table rows in compact form (CodedRows). With coordinate-wise
  /// clipping they read dense rows: a gradient coordinate that is 0 is then transformed to (0 - m)
  /// / scale, which is not 0 and cannot be skipped.
  bool reads_codes() const { return data->is_coded() && coordinates == nullptr; }

  /// Returns the words of an example's text, as indices in the vocabulary, [length(example)].
  const std::uint16_t* words(int example) const {
    return data->tokens.data() + examples[to_size(example)] * to_size(data->shape.size());
  }
  int length(int example) const { return data->lengths[examples[to_size(example)]]; }

  /// Returns the squared norms of an example's gradient, one for each trained layer. example:
  /// number among those that the thread processes at once.
  float* norms(int example) { return norms_.data() + of_example(example); }
  float& norm(int example, int group) { return norms(example)[group]; }
  /// Returns the factors by which an example's gradient is multiplied in the sum, one for each
  /// trained layer. example: number among those that the thread processes at once.
  float* factors(int example) { return factors_.data() + of_example(example); }
  float factor(int example, int group) { return factors(example)[group]; }

  /// Returns the arrays of coordinate-wise clipping for the parameters from offset `offset` on in
  /// the packed weights. Returns null pointers if clipping is not coordinate-wise.
  Transform transform(std::int64_t offset) const {
    if (coordinates == nullptr) return {};
    return {coordinates->transform.mean + offset, coordinates->transform.inverse + offset};
  }

  /// Returns scratch memory for n floats, valid until the next call.
  float* scratch(std::int64_t n) {
    if (scratch_.size() < to_size(n)) scratch_ = AlignedVector<float>(to_size(n));
    return scratch_.data();
  }

 private:
  std::ptrdiff_t of_example(int example) const {
    return static_cast<std::ptrdiff_t>(example) * groups_;
  }

  const Storage& storage_;
  int groups_;
  int in_flight_;
  AlignedVector<float> values_;
  AlignedVector<float> gradients_;
  AlignedVector<float> kept_gradients_;
  AlignedVector<float> example_gradient_;
  AlignedVector<float> saved_;
  std::vector<std::int32_t> numbers_;
  AlignedVector<float> norms_;
  std::vector<float> factors_;
  AlignedVector<float> scratch_;
};

}  // namespace cudp::cpu
