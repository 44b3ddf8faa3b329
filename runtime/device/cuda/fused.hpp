#pragma once
// Fused kernels (kernels/fused/fused_kernel.cuh, kernels/fused/dense_rows.cuh): choice for a
// network, and launches.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/precision.hpp"
#include "kernels/fused/fused.hpp"
#include "kernels/step/finish.hpp"
#include "kernels/step/packed_image.hpp"
#include "kernels/step/tally.hpp"
#include "models/model.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Layout of the packed copy of the parameters that a fused kernel reads
/// (kernels/fused/packed.hpp): offsets of the parameters, initial content, and PackedImage::low.
struct FusedPacking {
  std::vector<PackedPlace> (*places)() = nullptr;
  std::vector<unsigned char> (*image)() = nullptr;
  std::uint32_t low = 0;
};

/// A fused kernel (forward and backward pass, clipping and sum in one launch) that fits a network
/// and a device.
struct FusedKernel {
  void (*sum)(FusedSum) = nullptr;
  std::size_t shared_bytes = 0;
  std::array<Activate, 4> functions{};
  unsigned threads = kFusedThreads;
  DenseShapes dense{};  ///< shapes of a network without convolutions
  /// Number of examples that a thread block processes at once, with convolutions.
  int examples = 1;
  bool wants_bytes = false;  ///< features must be bytes without a shift
  FusedPacking packing{};    ///< used for a network with convolutions only
  int places = 0;            ///< T, maximum number of words of a text; 0 for other networks
  std::int64_t scratch = 0;  ///< bytes in device memory for each block

  bool weighs_classes() const { return dense.tile > 0; }
  bool has_tensor_cores() const { return packing.places != nullptr || places > 0; }
  /// Number of consecutive examples that a block is assigned at a time.
  int stripe() const { return dense.tile > 0 ? kTileExamples : 1; }
  bool takes(const DeviceData& data) const {
    return !wants_bytes || (data.bytes != nullptr && data.shift == 0.0f);
  }
};

/// Returns the fused kernels that can process a network on a device; none if the layer-wise path
/// (layer_wise.hpp) must be used. They differ in the number of examples per thread block, on which
/// no result depends, and in the features that they accept (bytes only, or all). Those for bytes
/// are first, and preferred. transforms: true for kernels that sum gradients transformed before
/// clipping, false for all other tasks.
std::vector<FusedKernel> fused_kernels_for(const Network& net, const DeviceLimits& limits,
                                           Precision precision, bool transforms = false);

/// Returns the precision of the matrix products in this network's kernels (fp32 or TF32) if the
/// user requests `requested`. Fused kernels of networks with only dense layers always use fp32.
/// transforms: whether gradients are transformed before clipping.
Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms = false);

class FusedNetwork {
 public:
  /// kernels: for all tasks but sums of transformed gradients; at least one. transformed: for sums
  /// of gradients that are transformed before clipping; may be empty. micro_batch: largest number
  /// of examples per launch, or 0 for as many as a launch can add without overflow.
  FusedNetwork(Gpu& gpu, const Network& net, std::vector<FusedKernel> kernels,
               std::vector<FusedKernel> transformed, int micro_batch, bool diagnostics);
  bool sums_transformed() const { return !transformed_.empty(); }

  /// Returns the packed copy of the parameters. The kernels read it, so every update of the
  /// parameters must also write it. Empty if the kernels read the parameters themselves.
  PackedImage packed() const;
  /// Writes all parameters [d] to the packed copy, if there is one.
  void pack(const float* parameters);

  /// Device pointers to the examples drawn for a step, and to the parameters of the model.
  struct Drawn {
    const std::uint32_t* count;     ///< [1]
    const std::uint32_t* examples;  ///< [*count], indices in the data set
    std::int64_t max_examples;      ///< only the first max_examples of `examples` are used
    double expected;                ///< expected value of *count
    const DeviceData& data;
    const float* parameters;  ///< [d]
    const SumScale* scale;    ///< [1], scale of the sum
  };

  /// Adds the clipped gradients of the drawn examples to fixed [d], as integer multiples of the
  /// sum's grid (drawn.scale), and losses and norms to *tally. The returned partial results are not
  /// included yet; the caller must add them.
  Unfinished sum_clipped(const Drawn& drawn, const ClippedGradient& clip, FixedPoint* fixed,
                         Tally* tally);

  /// As sum_clipped(), but each gradient is transformed before it is clipped (AdaCliP).
  Unfinished sum_transformed(const Drawn& drawn, const Transform& transform, FixedPoint* fixed,
                             Tally* tally);

  /// As sum_clipped(), for importance sampling: adds the gradients of accepted examples, each
  /// divided by its norm. norms: stored gradient norm of each example of the data set; those of the
  /// drawn examples are updated.
  Unfinished sum_accepted(const Drawn& drawn, const FusedAcceptance& accept, float* norms,
                          FixedPoint* fixed, Tally* tally);

  /// Computes the logits of examples 0 .. n - 1 of the data, [n, outputs], in one launch. count
  /// [1]: n, on the device.
  void forward(const std::uint32_t* count, std::size_t n, const DeviceData& data,
               const float* parameters, float* logits);

  /// Computes the norms of the gradients of examples 0 .. n - 1 of the data, [n], in one launch.
  /// count [1]: n, on the device.
  void norms(const std::uint32_t* count, std::size_t n, const DeviceData& data,
             const float* parameters, float* norms);

  /// Adds the partial sums of a launch's thread blocks to fixed [d].
  void add(const BlockSums& block_sums, FixedPoint* fixed);

 private:
  /// Launches the sum of the drawn examples' contributions, one micro-batch after another, with the
  /// kernel that choose() returns. args: all arguments but the batch and the output arrays. The
  /// returned partial results are not added to `fixed` and *tally yet.
  Unfinished sum(const std::vector<FusedKernel>& kernels, FusedSum args, const Drawn& drawn,
                 FixedPoint* fixed, Tally* tally);

  /// Returns the kernel that accepts the data and is expected to be the fastest.
  const FusedKernel& choose(const std::vector<FusedKernel>& kernels, const DeviceData& data,
                            double examples) const;
  void launch_kernel(const char* name, const FusedKernel& kernel, FusedSum args);

  /// Returns kernel arguments with the members set that are equal for every launch of a task.
  FusedSum args_of(FusedTask task, const DeviceData& data, const float* parameters) const;

  Gpu& gpu_;
  std::vector<FusedKernel> kernels_;
  std::vector<FusedKernel> transformed_;
  Buffer<PackedPlace> places_;  // [d], or empty
  Buffer<unsigned char> image_;
  Loss loss_;
  float huber_;
  int groups_;
  std::size_t parameters_;
  int blocks_;  // one per multiprocessor: two do not fit
  int stripe_;
  int capacity_;
  Buffer<std::int32_t> slabs_;  // [blocks, d]
  Buffer<unsigned char> scratch_;
  Buffer<float> losses_;  // [capacity], like the next two; empty without diagnostics
  Buffer<float> squared_norms_;
  Buffer<float> factors_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
