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

/// A fused kernel that fits a network and a device.
struct FusedKernel {
  void (*sum)(FusedSum) = nullptr;
  std::size_t shared_bytes = 0;
  std::array<Activate, 4> functions{};
  unsigned threads = kFusedThreads;
  DenseShapes dense{};       ///< shapes of a network without convolutions
  int examples = 1;          ///< that a block of one with convolutions processes at once
  bool wants_bytes = false;  ///< features must be bytes without a shift
  FusedPacking packing{};    ///< of a network with convolutions
  int places = 0;            ///< of a network of texts: T
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
/// (layer_wise.hpp) must be used. They differ in the number of examples that a block processes at
/// once, on which no result depends, and in the features that they accept (bytes only, or all).
/// Those for bytes are first and preferred. transforms: whether they are for sums of gradients that
/// are transformed before clipping, or for all other work.
std::vector<FusedKernel> fused_kernels_for(const Network& net, const DeviceLimits& limits,
                                           Precision precision, bool transforms = false);

/// Returns the precision in which a network is multiplied if `requested` is requested. A fused
/// kernel of dense layers alone always uses fp32. transforms: whether gradients are transformed
/// before clipping.
Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms = false);

class FusedNetwork {
 public:
  /// kernels: for all work but sums of transformed gradients; at least one. transformed: for sums
  /// of transformed gradients; may be empty. micro_batch: largest number of examples per launch, or
  /// 0 for as many as a launch can add without overflow.
  FusedNetwork(Gpu& gpu, const Network& net, std::vector<FusedKernel> kernels,
               std::vector<FusedKernel> transformed, int micro_batch, bool diagnostics);
  bool sums_transformed() const { return !transformed_.empty(); }

  /// Returns the packed copy of the parameters, which the kernels read and updates must write too;
  /// empty if the kernels read the parameters themselves.
  PackedImage packed() const;
  /// Writes all parameters [d] to the packed copy, if there is one.
  void pack(const float* parameters);

  /// Device pointers to the examples drawn for a step, and to the parameters of the model.
  struct Drawn {
    const std::uint32_t* count;     ///< [1]
    const std::uint32_t* examples;  ///< [*count], indices in the data set
    std::int64_t max_examples;      ///< only the first `max_examples` of them are used
    double expected;                ///< number of them that is expected
    const DeviceData& data;
    const float* parameters;  ///< [d]
    const SumScale* scale;    ///< [1], scale of the sum
  };

  /// Adds the clipped gradients of the drawn examples to fixed [d], in grid steps. Returns the
  /// partial results that have not been added yet; the caller must add them. tally: total of losses
  /// and norms.
  Unfinished sum_clipped(const Drawn& drawn, const ClippedGradient& clip, FixedPoint* fixed,
                         Tally* tally);

  /// Adds the gradients of drawn examples, transformed and then clipped, like sum_clipped().
  Unfinished sum_transformed(const Drawn& drawn, const Transform& transform, FixedPoint* fixed,
                             Tally* tally);

  /// Importance sampling: adds the gradients of accepted examples, divided by their norms;
  /// otherwise like sum_clipped(). norms: stored norm of each example of the data set; updated.
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

  /// Adds the partial sums of the blocks of a launch to fixed [d].
  void add(const BlockSums& block_sums, FixedPoint* fixed);

 private:
  /// Launches the sum of the drawn examples' contributions, micro-batch by micro-batch, with the
  /// best of the kernels. args: all arguments but the batch and the output arrays. Returns the
  /// partial results that have not been added yet.
  Unfinished sum(const std::vector<FusedKernel>& kernels, FusedSum args, const Drawn& drawn,
                 FixedPoint* fixed, Tally* tally);

  /// Returns the kernel that accepts the data and is expected to be the fastest.
  const FusedKernel& choose(const std::vector<FusedKernel>& kernels, const DeviceData& data,
                            double examples) const;
  void launch_kernel(const char* name, const FusedKernel& kernel, FusedSum args);

  /// Returns the arguments that are equal for every launch of a task; the others are empty.
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
