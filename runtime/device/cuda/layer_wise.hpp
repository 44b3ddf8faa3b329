#pragma once
// A network's passes over a micro-batch, layer by layer, as a sequence of kernel launches.
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

/// Examples in flight at most: blockIdx.z counts them.
inline constexpr std::int64_t kMaxInFlight = 32768;

/// Examples in flight, in whole groups: what the user chose; else 4096, or what a quarter of a
/// gibibyte holds if that is more, but no more than a gibibyte holds; and all `wanted` examples of
/// a recorded step where a quarter of the device's memory holds them.
std::int64_t examples_in_flight(const Network& network, const CudaLayout& layout, int chosen,
                                std::size_t memory, std::int64_t wanted);

class LayerWiseNetwork {
 public:
  /// micro_batch: examples in flight at most, 0 to choose. say: told where there are fewer than
  /// were chosen; may be null. Keeps a reference to `network`.
  LayerWiseNetwork(Gpu& gpu, const Network& network, int micro_batch, const LayoutChoices& choices,
                   std::function<void(const std::string&)> say = {});

  /// Makes room for as many examples in flight as is best for micro-batches of `wanted` examples.
  /// Returns whether anything has moved: what was recorded before must be recorded anew then.
  bool reserve(std::int64_t wanted);

  /// Examples in flight at most; 0 before reserve().
  int capacity() const { return work_ ? work_->capacity() : 0; }
  const CudaLayout& layout() const { return layout_; }
  const Buffer<float>& losses() const { return losses_; }
  const Buffer<float>& squared_norms() const { return squared_norms_; }

  /// Logits of the examples of a micro-batch; examples: their numbers in the data set, or null for
  /// 0, 1, ... parameters [d].
  void forward(const Batch& batch, const DeviceData& data, const std::uint32_t* examples,
               const float* parameters);

  /// The logits of examples 0 .. n - 1 of the data, [n, outputs], a micro-batch after the other;
  /// count [1]: n, on the device. After reserve().
  void logits(const std::uint32_t* count, std::size_t n, const DeviceData& data,
              const float* parameters, float* to);

  /// After forward() of the same examples: their losses, gradients by every activation, and squared
  /// norms of the parameters' gradients, transformed where coordinates are given.
  void backward(const CoordinatesView* coordinates = nullptr);

  /// scale [1], in device memory: its clipping norm is used.
  void clip(const ClippedGradient& clip, const SumScale* scale);

  /// Accepts candidates instead of clipping; see device::Accept. rule, step: in device memory.
  void accept(const ImportanceRule* rule, const RandomStream& stream, std::int64_t first,
              const std::uint64_t* step, float* norms);

  /// Norms of the micro-batch's gradients to norms[batch.first ...].
  void norms(float* norms);

  /// sum [d] += the micro-batch's gradients, as backward() saw them, times their factors, in units
  /// of the grid of scale [1].
  void add(FixedPoint* sum, const SumScale* scale);

  /// Each example's own gradient to gradients [capacity(), d].
  void store_gradients(float* gradients);

  /// What adds the losses and norms of the micro-batch, which was clipped, to *total.
  TallyBatch tally(Tally* total) const;

 private:
  void allocate(int capacity);

  Gpu& gpu_;
  const Network& net_;
  int micro_batch_;
  bool transforms_;
  std::function<void(const std::string&)> say_;
  std::int64_t max_in_flight_ = kMaxInFlight;  // less where memory has run out
  CudaLayout layout_;
  std::optional<MicroBatch> work_;
  Buffer<std::int32_t> group_parts_;
  Buffer<float> losses_;           // [capacity]
  Buffer<float> logit_gradients_;  // [capacity, outputs]
  Buffer<float> squared_norms_;    // [capacity, groups]
};

}  // namespace cudp::cuda::inline CUDP_SIMT
