#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/layers/embedding.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/plans.hpp"
#include "runtime/device/cuda/products.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Pointers to the examples of a data set in device memory. The members have the same names as
/// those of Dataset. Only the pointers for the data set's kind of features are set; the others are
/// null.
struct DeviceData {
  const std::uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  CodedRows coded = {};
  const std::uint8_t* labels = nullptr;
  const float* targets = nullptr;        ///< null: the examples have none
  const float* class_weights = nullptr;  ///< EngineSettings::class_weights; null: all are 1
  device::Texts texts = {};
  float scale = 1.0f;
  float shift = 0.0f;
};

/// Arrays of coordinate-wise clipping, which clips (gradient - m) / scale, in device memory. d is
/// the number of trained parameters, groups the number of trained layers.
struct CoordinatesView {
  const float* centre;   ///< [d], m times CoordinateScale::shrink
  const float* inverse;  ///< [d], 1 / scale
  const float* square;   ///< [d], 1 / scale^2
  const float* product;  ///< [d], m / scale^2
  double* shifts;        ///< [groups], constant c of dense_square for each trained layer

  /// Returns the arrays of the transform before clipping, for the parameters from index `offset`
  /// on.
  Transform of(std::int64_t offset) const { return {centre + offset, inverse + offset}; }
};

/// Device memory for the activations, gradients and norms of one micro-batch, the examples of a
/// step that are processed at once. The layers of a network read and write it.
class MicroBatch {
 public:
  /// Keeps a reference to `edges`. capacity: largest number of examples. transforms: whether
  /// gradients are ever transformed before clipping. gpu_in: the device. storage: sizes of the
  /// arrays. groups_in: number of layers with trained parameters.
  MicroBatch(Gpu& gpu_in, const std::vector<CudaEdge>& edges, const CudaStorage& storage,
             int groups_in, int capacity, bool transforms)
      : gpu(gpu_in),
        products(gpu_in, storage),
        groups(groups_in),
        edges_(edges),
        capacity_(capacity),
        labels_(gpu, per_example(1)),
        lengths_(gpu, storage.has_texts ? per_example(1) : 0),
        saved_(gpu, per_example(storage.saved)),
        example_gradients_(gpu, per_example(storage.example_gradients)),
        unread_parts_(storage.parts()),
        parts_(gpu, per_example(storage.parts() + storage.unread_parts)),
        factors_(gpu, per_example(groups)),
        scratch_(gpu, transforms ? per_example(storage.transform_scratch) : 0),
        library_scratch_(gpu, per_example(storage.library_scratch)) {
    ensure(capacity_ <= max_capacity(edges, storage),
           "the micro-batch is too large for 32-bit offsets");
    for (const CudaEdge& e : edges) {
      values_.emplace_back(gpu, per_example(e.value.size()));
      gradients_.emplace_back(gpu, e.has_gradient ? per_example(e.gradient.size()) : 0);
      values_.back().clear();  // borders are zero and stay zero
      gradients_.back().clear();
    }
  }

  /// Returns the largest number of examples of a micro-batch for which 32-bit offsets reach every
  /// element of its arrays. edges, storage: determine the sizes of the arrays.
  static std::int64_t max_capacity(const std::vector<CudaEdge>& edges, const CudaStorage& storage) {
    std::int64_t floats = std::max<std::int64_t>(
        {1, storage.saved, storage.example_gradients, storage.parts() + storage.unread_parts,
         storage.transform_scratch, storage.library_scratch});
    for (const CudaEdge& e : edges)
      floats = std::max<std::int64_t>({floats, e.value.size(), e.gradient.size()});
    return ((std::int64_t{1} << 31) - 1) / floats;
  }

  /// For tests: fills all memory except the borders of images with a value that the test chooses.
  /// Does nothing outside of tests. Call it before each micro-batch.
  void fill_scratch() {
    if (!gpu.fills_scratch()) return;  // filling line by line takes as long as the kernels
    for (std::size_t i = 0; i < values_.size(); ++i) {
      fill_scratch(edges_[i].value, values_[i]);
      if (edges_[i].has_gradient) fill_scratch(edges_[i].gradient, gradients_[i]);
    }
    for (Buffer<float>* b :
         {&saved_, &example_gradients_, &parts_, &factors_, &scratch_, &library_scratch_})
      b->fill_scratch();
    labels_.fill_scratch();
    lengths_.fill_scratch();
    products.fill_scratch();
  }

  Gpu& gpu;
  CudaProducts products;
  const int groups;

  // The current micro-batch. The caller sets these members before it runs the passes.
  Batch batch{};
  DeviceData data;
  const std::uint32_t* examples = nullptr;       ///< indices in the data set, or null for 0, 1, ...
  const float* parameters = nullptr;             ///< [d]
  const CoordinatesView* coordinates = nullptr;  ///< null if gradients are not transformed

  int capacity() const { return capacity_; }
  std::size_t per_example(std::int64_t n) const {
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(capacity_);
  }

  float* value(const CudaEdge& e) const { return values_[e.number].get(); }
  float* gradient(const CudaEdge& e) const { return gradients_[e.number].get(); }
  /// Returns the derivatives of the examples' losses by their logits, [capacity, outputs()].
  const float* logit_gradients() const { return gradients_.back().get(); }
  int outputs() const { return edges_.back().gradient.size(); }
  std::uint8_t* labels() const { return labels_.get(); }
  /// Returns the number of words of each text, [capacity].
  std::int32_t* lengths() const { return lengths_.get(); }
  /// Returns the memory of a layer for the values that it saves in forward() for backward(),
  /// [capacity, n]. offset: where the layer reserved its n floats per example.
  float* saved(std::int64_t offset) const { return saved_.get() + offset * capacity_; }
  float* example_gradients(std::int64_t offset) const {
    return example_gradients_.get() + offset * capacity_;
  }
  /// Returns the partial sums of squared gradient norms, [partial sums, number of examples of the
  /// batch]. first: index of a layer's first partial sum.
  float* parts(std::int32_t first = 0) const {
    return parts_.get() + std::int64_t{first == CudaStorage::kUnreadParts ? unread_parts_ : first} *
                              batch.capacity;
  }
  /// Returns the address of the clip factors of layer number `group` (among the layers with trained
  /// parameters). The array is [capacity, groups], so the factor of example e is at index e *
  /// groups from this address.
  float* factors(int group = 0) const { return factors_.get() + group; }
  /// Returns scratch memory for the norms of transformed gradients: CudaStorage::transform_scratch
  /// floats for each of capacity() examples.
  float* scratch() const { return scratch_.get(); }
  /// Returns scratch memory for calls of cuDNN: CudaStorage::library_scratch floats for each of
  /// capacity() examples.
  float* library_scratch() const { return library_scratch_.get(); }
  Transform transform(std::int64_t offset) const {
    return coordinates != nullptr ? coordinates->of(offset) : Transform{};
  }

 private:
  void fill_scratch(const Planes& p, Buffer<float>& buffer) {
    const auto lines = std::int64_t{capacity_} * p.channels;
    if (p.plane() == std::int64_t{p.height} * p.width) return buffer.fill_scratch();  // no border
    for (std::int64_t i = 0; i < lines * p.height; ++i)
      buffer.fill_scratch(static_cast<std::size_t>(i / p.height * p.plane() +
                                                   p.at(0, static_cast<int>(i % p.height), 0)),
                          static_cast<std::size_t>(p.width));
  }

  const std::vector<CudaEdge>& edges_;
  int capacity_;
  std::vector<Buffer<float>> values_;     // per edge, [capacity, value planes]
  std::vector<Buffer<float>> gradients_;  // per edge, [capacity, gradient planes]
  Buffer<std::uint8_t> labels_;
  Buffer<std::int32_t> lengths_;
  Buffer<float> saved_;
  Buffer<float> example_gradients_;
  std::int32_t unread_parts_;  // first partial sum of frozen layers
  Buffer<float> parts_;
  Buffer<float> factors_;
  Buffer<float> scratch_;
  Buffer<float> library_scratch_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
