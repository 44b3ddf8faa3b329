#pragma once
// First layer of networks for texts. It reads texts directly from the data set, so it has no input
// array.
#include "kernels/layers/embedding.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Embedding layer on a CUDA device: replaces each word of a text with its vector, which is trained
/// if the layer is trainable.
class CudaEmbedding final : public CudaLayer {
 public:
  CudaEmbedding(const Embedding& layer) : is_trainable_(layer.trainable) {}

  void forward(MicroBatch& w) const override {
    launch(w.gpu, "embedding", embed_kernel,
           device::Embed{.batch = w.batch,
                         .examples = w.examples,
                         .texts = w.data.texts,
                         .labels = w.data.labels,
                         .places = places(),
                         .columns = AnyDivisor(columns()),
                         .rows = rows_,
                         .weight = rows_ > 0 ? w.parameters + offset() : nullptr,
                         .y = w.value(out()),
                         .own_length = w.lengths(),
                         .own_label = w.labels()});
  }

  void gradient(MicroBatch& w) const override {
    if (!is_trainable_) return;
    ensure(w.coordinates == nullptr, "a trainable embedding's gradients are not transformed");
    device::EmbeddingGradient g = gradient_of(w);
    g.parts = w.parts(first_part_);
    launch(w.gpu, "embedding norm", embedding_gradient_kernel, g);
  }

  void add(MicroBatch& w, FixedPoint* sum, const SumScale* scale) const override {
    if (!is_trainable_) return;
    device::EmbeddingGradient g = gradient_of(w);
    g.sum = sum + offset();
    g.factors = w.factors(group());
    g.factor_stride = w.groups;
    g.scale = scale;
    launch(w.gpu, "embedding sum", embedding_gradient_kernel, g);
  }

  void store_gradients(MicroBatch& w, float* gradients) const override {
    if (!is_trainable_) return;
    device::EmbeddingGradient g = gradient_of(w);
    g.gradients = gradients + offset();
    g.stride = network_parameters();
    launch(w.gpu, "embedding gradients", embedding_gradient_kernel, g);
  }

 private:
  void reserve(const LayoutChoices&, CudaStorage& s) override {
    s.has_texts = true;
    if (!is_trainable_) return;
    s.sorts_words = true;
    rows_ = tensor_shape(0)[0];
    first_part_ = reserve_parts(s, 1);
  }

  device::EmbeddingGradient gradient_of(const MicroBatch& w) const {
    return {.batch = w.batch,
            .examples = w.examples,
            .texts = w.data.texts,
            .places = places(),
            .columns = columns(),
            .rows = rows_,
            .length = w.lengths(),
            .dy = w.gradient(out())};
  }
  int places() const { return out().value.height; }
  int columns() const { return out().value.width; }

  bool is_trainable_;
  std::int32_t rows_ = 0;  ///< number of trained word vectors
  std::int32_t first_part_ = 0;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
