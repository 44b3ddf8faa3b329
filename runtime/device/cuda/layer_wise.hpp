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

/// Largest number of examples in flight. It is limited because blockIdx.z counts them.
inline constexpr std::int64_t kMaxInFlight = 32768;

/// Returns the number of examples to process at a time, a multiple of CudaLayout::example_group().
/// If the user chose a number (chosen > 0), that is used. Otherwise it is the larger of two
/// numbers. The first is 4096, or more if a quarter of a gibibyte holds more, but at most what a
/// gibibyte holds. The second is `wanted`, the examples of a recorded step, but at most what a
/// quarter of the device's `memory` [bytes] holds.
std::int64_t examples_in_flight(const Network& network, const CudaLayout& layout, int chosen,
                                std::size_t memory, std::int64_t wanted);

/// The number that an example's class weight is multiplied with: the clipping factors (so after
/// clipping), or the gradient of the loss (before), for importance sampling and transformed
/// gradients.
enum class Weighted { factors, loss };

class LayerWiseNetwork {
 public:
  /// micro_batch: largest number of examples that are processed at once, or 0 to choose it
  /// automatically. say: called with a message if memory allows fewer only; may be empty.
  /// has_weights: whether classes have weights. Keeps a reference to `network`.
  LayerWiseNetwork(Gpu& gpu, const Network& network, int micro_batch, const LayoutChoices& choices,
                   std::function<void(const std::string&)> say = {}, bool has_weights = false);

  /// Allocates memory for micro-batches, sized for steps of `wanted` examples
  /// (examples_in_flight()). Returns whether the address of any array has changed; CUDA graphs must
  /// then be recorded again.
  bool reserve(std::int64_t wanted);

  /// Returns the largest number of examples of a micro-batch; 0 before reserve().
  int capacity() const { return work_ ? work_->capacity() : 0; }
  const CudaLayout& layout() const { return layout_; }
  const Buffer<float>& losses() const { return losses_; }
  const Buffer<float>& squared_norms() const { return squared_norms_; }

  /// Computes the logits of a micro-batch. examples: indices in the data set, or null for 0, 1, ...
  /// parameters [d].
  void forward(const Batch& batch, const DeviceData& data, const std::uint32_t* examples,
               const float* parameters);

  /// Computes the logits of examples 0 .. n - 1 of the data, [n, outputs], one micro-batch after
  /// another. count [1]: n, on the device. Requires reserve().
  void logits(const std::uint32_t* count, std::size_t n, const DeviceData& data,
              const float* parameters, float* to);

  /// Computes the losses, the gradients with respect to every activation, and the squared norms of
  /// the parameters' gradients, transformed if coordinates are given. weighted: the number that
  /// class weights are multiplied with, if there are any. Requires forward() of the same examples.
  void backward(Weighted weighted, const CoordinatesView* coordinates = nullptr);

  /// Computes the clipping factors of all examples, times their class weights if backward() has not
  /// applied these. scale: [1], in device memory; has the clipping norm.
  void clip(const ClippedGradient& clip, const SumScale* scale);

  /// Importance sampling, instead of clip(): computes the factor of each example, 1 / norm if it is
  /// accepted, else 0. rule, step: in device memory. first: index of example 0 in the random
  /// stream. norms: stored gradient norm of each example; those of this micro-batch are updated.
  void accept(const ImportanceRule* rule, const RandomStream& stream, std::int64_t first,
              const std::uint64_t* step, float* norms);

  /// Writes the norms of the micro-batch's gradients to norms[batch.first ...].
  void norms(float* norms);

  /// Multiplies each example's gradient, which backward() computed, by its clipping factor and adds
  /// it to sum [d], rounded to integer multiples of scale->grid. scale: [1].
  void add(FixedPoint* sum, const SumScale* scale);

  /// Writes the unclipped gradient of each example to gradients [capacity(), d].
  void store_gradients(float* gradients);

  /// Returns the arguments of a kernel that adds the losses and norms of the micro-batch to *total.
  /// Requires clip().
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
  std::int64_t max_in_flight_ = kMaxInFlight;  // less after memory has run out
  CudaLayout layout_;
  std::optional<MicroBatch> work_;
  Weighted weighted_ = Weighted::factors;  // of the last backward()
  Buffer<std::int32_t> group_parts_;
  Buffer<float> losses_;           // [capacity]
  Buffer<float> logit_gradients_;  // [capacity, outputs]
  Buffer<float> squared_norms_;    // [capacity, groups]
  Buffer<float> clip_factors_;     // [capacity, groups], without class weights; empty if none
};

}  // namespace cudp::cuda::inline CUDP_SIMT
