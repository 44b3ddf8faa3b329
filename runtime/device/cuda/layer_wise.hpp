#pragma once
// Passes of a network over a micro-batch, layer by layer, as a sequence of kernel launches.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/contribution/clip.hpp"
#include "kernels/step/tally.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/layout.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Maximum number of examples in a micro-batch, i.e. that are processed at once. It is limited
/// because kernels use the grid dimension z for the example.
inline constexpr std::int64_t kMaxInFlight = 32768;

/// Returns the size of a micro-batch, the number of examples that are processed at once: a multiple
/// of CudaLayout::example_group(). It is `chosen` if the user chose a number (chosen > 0).
/// Otherwise it is the larger of two numbers: (1) as many examples as fit into 256 MiB, but at
/// least 4096, and at most as many as fit into 1 GiB; (2) `wanted`, the number of examples of a
/// step, but at most as many as fit into a quarter of `memory`, the device's memory [bytes].
/// layout: memory layout of the network.
std::int64_t examples_in_flight(const Network& network, const CudaLayout& layout, int chosen,
                                std::size_t memory, std::int64_t wanted);

/// Where the weight of an example's class is applied. factors: to the example's clip factor, i.e.
/// after clipping. loss: to the gradient of the loss, i.e. before clipping; used for importance
/// sampling and transformed gradients.
enum class Weighted { factors, loss };

/// Computes a network layer by layer, for one micro-batch (a part of the batch) after another. Owns
/// the memory for the activations and gradients of a micro-batch. d is the number of trained
/// parameters.
class LayerWiseNetwork {
 public:
  /// Makes the layers of a network and their memory layout. Keeps a reference to `network`.
  /// micro_batch: largest number of examples that are processed at once, or 0 to choose it
  /// automatically. choices: options that determine how layers are computed. say: function that is
  /// called with a message if device memory allows only fewer examples; may be empty. has_weights:
  /// whether classes have weights.
  LayerWiseNetwork(Gpu& gpu, const Network& network, int micro_batch, const LayoutChoices& choices,
                   std::function<void(const std::string&)> say = {}, bool has_weights = false);

  /// Allocates memory for micro-batches of a size that suits steps of `wanted` examples. Returns
  /// whether the address of any array has changed; if so, CUDA graphs must be recorded again.
  bool reserve(std::int64_t wanted);

  /// Returns the largest number of examples of a micro-batch; 0 before reserve().
  int capacity() const { return work_ ? work_->capacity() : 0; }
  const CudaLayout& layout() const { return layout_; }
  const Buffer<float>& losses() const { return losses_; }
  const Buffer<float>& squared_norms() const { return squared_norms_; }

  /// Computes the logits of a micro-batch. examples: for each example of the batch its index in the
  /// data set; null if the indices are 0, 1, ... parameters: [d], in device memory.
  void forward(const Batch& batch, const DeviceData& data, const std::uint32_t* examples,
               const float* parameters);

  /// Computes the logits of examples 0 .. n - 1 of the data, one micro-batch after another, and
  /// writes them to `to` [n, outputs]. count: address in device memory of the number n. Requires
  /// reserve(). parameters: the network's parameters, [d], in device memory.
  void logits(const std::uint32_t* count, std::size_t n, const DeviceData& data,
              const float* parameters, float* to);

  /// Computes the losses, the gradients with respect to all activations, and the squared norms of
  /// the parameters' gradients. If coordinates is not null, the norms are those of the gradients
  /// after the transform of coordinate-wise clipping. weighted: where class weights, if there are
  /// any, are applied. Requires that forward() has been called for the same examples.
  void backward(Weighted weighted, const CoordinatesView* coordinates = nullptr);

  /// Computes the clip factors of all examples of the micro-batch. They include the class weights
  /// unless backward() has applied these to the loss's gradient. scale: device address of the
  /// step's clipping norm and grid.
  void clip(const ClippedGradient& clip, const SumScale* scale);

  /// For importance sampling, in place of clip(): accepts or rejects each example and computes the
  /// factor of its gradient, 1 / norm if it is accepted, else 0. rule, step: in device memory.
  /// first: index of example 0's word in the random stream. norms: stored gradient norm of each
  /// example of the data set; those of this micro-batch are replaced with the current norms.
  void accept(const ImportanceRule* rule, const RandomStream& stream, std::int64_t first,
              const std::uint64_t* step, float* norms);

  /// Writes the gradient norms of the micro-batch's examples to norms[batch.first],
  /// norms[batch.first + 1], ...
  void norms(float* norms);

  /// Multiplies each example's gradient by its factor, which clip() or accept() has computed,
  /// rounds every number to a multiple of scale->grid and adds these integer multiples to sum [d].
  /// Requires backward(). scale: in device memory.
  void add(FixedPoint* sum, const SumScale* scale);

  /// Writes the unclipped gradient of each example of the micro-batch to gradients [capacity(), d].
  void store_gradients(float* gradients);

  /// Returns the arguments of a kernel that adds the losses, gradient norms and counts of the
  /// micro-batch's examples to *total. Requires clip().
  TallyBatch tally(Tally* total) const;

 private:
  void allocate(int capacity);
  bool weighs_factors() const {
    return weighted_ == Weighted::factors && work_->data.class_weights != nullptr;
  }

  Gpu& gpu_;
  const Network& net_;
  int micro_batch_;
  bool transforms_;
  bool has_weights_;
  std::function<void(const std::string&)> say_;
  std::int64_t max_in_flight_ = kMaxInFlight;  // smaller after an allocation has failed
  CudaLayout layout_;
  std::optional<MicroBatch> work_;
  Weighted weighted_ = Weighted::factors;  // argument of the last backward()
  Buffer<std::int32_t> group_parts_;
  Buffer<float> losses_;           // [capacity]
  Buffer<float> logit_gradients_;  // [capacity, outputs]
  Buffer<float> squared_norms_;    // [capacity, groups]
  Buffer<float> clip_factors_;     // [capacity, groups], without class weights; empty if none
};

}  // namespace cudp::cuda::inline CUDP_SIMT
