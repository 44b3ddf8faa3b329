#pragma once
// Which networks are summed by a fused kernel (kernels/fused/fused_cnn.cuh,
// kernels/fused/fused_mlp.cuh), and its launches.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/fused/fused.hpp"
#include "kernels/step/finish.hpp"
#include "kernels/step/tally.hpp"
#include "models/model.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// A fused kernel that fits a network and a device.
struct FusedKernel {
  void (*sum)(FusedSum) = nullptr;
  std::size_t shared_bytes = 0;
  std::array<Activate, 3> functions;
  DenseShapes dense{};  ///< of a network without convolutions
};

/// None where the layer-wise path (layer_wise.hpp) is to be taken. transforms: for sums of
/// gradients that are transformed before they are clipped, and for nothing else.
std::optional<FusedKernel> fused_kernel_for(const Network& net, const DeviceLimits& limits,
                                            bool transforms = false);

/// The precision that a network is multiplied in where `requested` was asked for: what a fused
/// kernel sums in fp32 throughout. transforms: gradients are, before they are clipped.
Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms = false);

class FusedNetwork {
 public:
  /// transformed: the kernel of sums of transformed gradients, where there are to be any.
  /// micro_batch: examples a launch at most, 0 for as many as a launch can add.
  FusedNetwork(Gpu& gpu, const Network& net, const FusedKernel& kernel,
               const std::optional<FusedKernel>& transformed, int micro_batch, bool diagnostics);
  bool sums_transformed() const { return transformed_.has_value(); }

  /// Examples drawn, and the model.
  struct Drawn {
    const std::uint32_t* count;     ///< [1]
    const std::uint32_t* examples;  ///< [*count], numbers in the data set
    std::int64_t room;              ///< the first so many are taken, as far as there are
    const DeviceData& data;
    const float* parameters;  ///< [d]
    const SumScale* scale;    ///< [1], of the sum
  };

  /// The clipped gradients of the examples drawn, in units of the grid: they are added to fixed
  /// [d], but for what is returned.
  Unfinished sum_clipped(const Drawn& drawn, const ClippedGradient& clip, FixedPoint* fixed,
                         Tally* tally);

  /// The same of transformed gradients.
  Unfinished sum_transformed(const Drawn& drawn, const Transform& transform, FixedPoint* fixed,
                             Tally* tally);

  /// The same of the directions of accepted candidates. norms [data set]: as last seen, brought up
  /// to date.
  Unfinished sum_accepted(const Drawn& drawn, const FusedAcceptance& accept, float* norms,
                          FixedPoint* fixed, Tally* tally);

  /// The logits of examples 0 .. n - 1 of the data, [n, outputs], in one launch; count [1]: n, on
  /// the device.
  void forward(const std::uint32_t* count, std::size_t n, const DeviceData& data,
               const float* parameters, float* logits);

  /// The norms of the gradients of examples 0 .. n - 1 of the data, [n], likewise.
  void norms(const std::uint32_t* count, std::size_t n, const DeviceData& data,
             const float* parameters, float* norms);

  /// fixed [d] += what a launch has left in the blocks' sums.
  void add(const BlockSums& left, FixedPoint* fixed);

 private:
  /// args: all but the batch and what is written of it.
  Unfinished sum(const FusedKernel& kernel, FusedSum args, const Drawn& drawn, FixedPoint* fixed,
                 Tally* tally);

  /// What is the same for every launch; the rest is empty.
  FusedSum args_of(FusedTask task, const DeviceData& data, const float* parameters) const;

  Gpu& gpu_;
  FusedKernel kernel_;
  std::optional<FusedKernel> transformed_;
  Loss loss_;
  int groups_;
  std::size_t parameters_;
  int blocks_;  // one a multiprocessor: two do not fit
  int turn_;
  int capacity_;
  Buffer<std::int32_t> slabs_;  // [blocks, d]
  Buffer<float> losses_;        // [capacity], and so on; empty without diagnostics
  Buffer<float> squared_norms_;
  Buffer<float> factors_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
