#pragma once
// Fused kernels (kernels/fused/fused_kernel.cuh, kernels/fused/dense_rows.cuh,
// kernels/fused/recurrent_kernel.cuh): code that chooses one for a network, and launches it.
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

/// Layout of the packed copy of the parameters that a fused kernel reads. Members: `places`, the
/// position of each parameter in the copy; `image`, the initial content; `low`, the distance
/// between the two fp16 numbers whose sum is a weight [bytes].
struct FusedPacking {
  std::vector<PackedPlace> (*places)() = nullptr;
  std::vector<unsigned char> (*image)() = nullptr;
  std::uint32_t low = 0;
};

/// A fused kernel, and how to launch it for one network and device. It computes forward and
/// backward pass, clipping and sum of the gradients in one launch.
struct FusedKernel {
  void (*sum)(FusedSum) = nullptr;
  std::size_t shared_bytes = 0;
  std::array<Activate, 4> functions{};
  unsigned threads = kFusedThreads;
  DenseShapes dense{};  ///< shapes of a network without convolutions
  /// Number of examples that a thread block processes at once, for networks with convolutions.
  int examples = 1;
  bool wants_bytes = false;  ///< features must be bytes without a shift
  FusedPacking packing{};    ///< used for a network with convolutions only
  int places = 0;            ///< T, maximum number of words of a text; 0 for other networks
  std::int64_t scratch = 0;  ///< bytes in device memory for each block

  bool has_tensor_cores() const { return packing.places != nullptr || places > 0; }
  /// Returns the number of consecutive examples that are assigned to one thread block before the
  /// next block gets its examples.
  int stripe() const { return dense.tile > 0 ? kTileExamples : 1; }
  bool takes(const DeviceData& data) const {
    return !wants_bytes || (data.bytes != nullptr && data.shift == 0.0f);
  }
};

/// Returns the fused kernels (whole network in one launch) that can process a network on a device.
/// If there are none, the network must be computed layer by layer. The kernels differ in the number
/// of examples per thread block, on which no result depends, and in the features that they accept:
/// bytes only, or all. Those for bytes come first and are preferred. transforms: true to get
/// kernels that sum gradients which are transformed before clipping, false for kernels for all
/// other tasks. limits: limits of the device. precision: precision of the matrix products.
std::vector<FusedKernel> fused_kernels_for(const Network& net, const DeviceLimits& limits,
                                           Precision precision, bool transforms = false);

/// Returns the fused kernel for a network that has only dense layers, if its layout fits the
/// device; an empty list if it does not fit or has other layers. limits: limits of the device.
/// transforms: whether gradients are transformed before clipping (coordinate-wise clipping).
std::vector<FusedKernel> dense_kernels_for(const Network& net, const DeviceLimits& limits,
                                           bool transforms);

/// Returns the precision of the matrix products (fp32 or TF32) with which this network is computed
/// on a device. requested: the user's setting. Fused kernels (whole network in one launch) of
/// networks with only dense layers always use fp32. transforms: whether gradients are transformed
/// before clipping. limits: limits of the device.
Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms = false);

/// Computes the three results of a network for which fused kernels exist: sums of gradients, logits
/// and gradient norms. d is the number of trained parameters.
class FusedNetwork {
 public:
  /// Prepares the kernels for a network. gpu: the device. net: the network. kernels: at least one
  /// kernel, for all tasks except sums of transformed gradients. transformed: kernels for sums of
  /// gradients that are transformed before clipping; may be empty. micro_batch: largest number of
  /// examples per launch; 0 for as many as a launch can add without integer overflow. diagnostics:
  /// whether losses and gradient norms are computed for the user.
  FusedNetwork(Gpu& gpu, const Network& net, std::vector<FusedKernel> kernels,
               std::vector<FusedKernel> transformed, int micro_batch, bool diagnostics);
  bool sums_transformed() const { return !transformed_.empty(); }

  /// Returns the address and layout of the packed copy of the parameters that the kernels read.
  /// Every update of the parameters must also write it. Empty if the kernels read the parameters
  /// themselves.
  PackedImage packed() const;
  /// Writes all parameters [d] to the packed copy, if there is one.
  void pack(const float* parameters);

  /// Device pointers to the examples drawn for a step, and to the parameters of the model. d is the
  /// number of trained parameters.
  struct Drawn {
    const std::uint32_t* count;     ///< [1], number of drawn examples
    const std::uint32_t* examples;  ///< [*count], indices in the data set
    std::int64_t max_examples;      ///< only the first max_examples of `examples` are used
    double expected;                ///< expected value of *count
    const DeviceData& data;
    const float* parameters;  ///< [d]
    const SumScale* scale;    ///< [1], grid of the sum and clipping norm
  };

  /// Computes the sum of the clipped gradients of the drawn examples, as integer multiples of the
  /// sum's grid (drawn.scale), and the sums of their losses and norms. One part of these sums is
  /// added to fixed [d] and *tally. The other part is returned as partial sums; the caller must add
  /// them. clip: clip settings.
  Unfinished sum_clipped(const Drawn& drawn, const ClippedGradient& clip, FixedPoint* fixed,
                         Tally* tally);

  /// Computes the sum of the drawn examples' gradients, each transformed (coordinate-wise clipping,
  /// AdaCliP) and then clipped, and the sums of their losses and norms. One part of these sums is
  /// added to fixed [d] and *tally. The other part is returned as partial sums; the caller must add
  /// them. transform: arrays with m and 1 / scale of each parameter.
  Unfinished sum_transformed(const Drawn& drawn, const Transform& transform, FixedPoint* fixed,
                             Tally* tally);

  /// Importance sampling: accepts or rejects each drawn example. Computes the sum of the accepted
  /// gradients, each divided by its norm, and the sums of losses and norms. One part of these sums
  /// is added to fixed [d] and *tally. The other part is returned as partial sums; the caller must
  /// add them. norms: stored gradient norm of each example of the data set; those of the drawn
  /// examples are replaced with the current norms. accept: settings of importance sampling, and the
  /// random stream that decides.
  Unfinished sum_accepted(const Drawn& drawn, const FusedAcceptance& accept, float* norms,
                          FixedPoint* fixed, Tally* tally);

  /// Computes the logits of examples 0 .. n - 1 of the data in one launch, and writes them to
  /// logits [n, outputs]. count: address in device memory of the number n. parameters: the
  /// network's parameters, [d], in device memory.
  void forward(const std::uint32_t* count, std::size_t n, const DeviceData& data,
               const float* parameters, float* logits);

  /// Computes the gradient norms of examples 0 .. n - 1 of the data in one launch, and writes them
  /// to norms [n]. count: address in device memory of the number n. parameters: the network's
  /// parameters, [d], in device memory.
  void norms(const std::uint32_t* count, std::size_t n, const DeviceData& data,
             const float* parameters, float* norms);

  /// Adds `block_sums`, the partial sums that the thread blocks of a launch have written, to fixed
  /// [d].
  void add(const BlockSums& block_sums, FixedPoint* fixed);

 private:
  /// Computes a sum over the drawn examples: launches the kernel that choose() returns for one
  /// micro-batch after another. args: all arguments except the batch and the output arrays. The
  /// returned partial sums are not yet added to `fixed` and *tally; the caller must add them.
  /// kernels: those among which choose() chooses.
  Unfinished sum(const std::vector<FusedKernel>& kernels, FusedSum args, const Drawn& drawn,
                 FixedPoint* fixed, Tally* tally);

  /// Returns the kernel of `kernels` that can read the features of `data` and is expected to be the
  /// fastest. examples: expected number of examples of a launch.
  const FusedKernel& choose(const std::vector<FusedKernel>& kernels, const DeviceData& data,
                            double examples) const;
  void launch_kernel(const char* name, const FusedKernel& kernel, FusedSum args);

  /// Returns kernel arguments with those members set that are the same for every launch of a task.
  /// task: what the launch computes. parameters: the network's parameters, [d], in device memory.
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
  int blocks_;  // number of blocks: one per multiprocessor, as two do not fit
  int stripe_;
  int capacity_;
  Buffer<std::int32_t> slabs_;  // [blocks, d]
  Buffer<unsigned char> scratch_;
  Buffer<float> losses_;  // [capacity], like the next two; empty without diagnostics
  Buffer<float> squared_norms_;
  Buffer<float> factors_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
