#include <algorithm>
#include <variant>
#include <vector>

#include "kernels/fused/fused_cnn.cuh"
#include "kernels/fused/fused_mlp.cuh"
#include "kernels/fused/fused_models.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layout.hpp"
#include "runtime/device/cuda/step_end.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Iterator over the layers of a network, in the order in which a fused kernel expects them.
class LayerWalk {
 public:
  explicit LayerWalk(const Network& n) : layers_(n.layers) {}

  template <class L>
  bool is_convolution() {
    const auto* c = next<Conv2d>();
    return c != nullptr && c->out_channels == L::kOut && c->kernel == L::kKernel &&
           c->stride == L::kStride && c->pad == L::kPad;
  }
  template <class L>
  bool is_pool() {
    if (L::kPool == 1) return true;
    const auto* p = next<MaxPool2d>();
    return p != nullptr && p->kernel == L::kPool && p->stride == 1;
  }
  bool is_dense(int out) { return dense_outputs() == out; }
  /// Returns the number of outputs of the next layer if it is dense, else 0.
  int dense_outputs() {
    const auto* d = next<Dense>();
    return d != nullptr ? d->out : 0;
  }
  bool is_function(Activate& function) {
    const auto* f = next<Activate>();
    if (f != nullptr) function = *f;
    return f != nullptr;
  }
  bool is_end() const { return at_ == layers_.size(); }

 private:
  template <class L>
  const L* next() {
    return at_ < layers_.size() ? std::get_if<L>(&layers_[at_++].layer) : nullptr;
  }
  const std::vector<NetworkLayer>& layers_;
  std::size_t at_ = 0;
};

/// Largest shared memory that a block can use on any supported device [bytes]. A kernel that needs
/// more is not compiled.
inline constexpr std::size_t kMostShared = std::size_t{227} * 1024;

/// Returns the description's kernel if it matches this network and the device's shared memory can
/// hold it, with as many of the weights in shared memory as fit.
template <class Model, bool transforms>
std::optional<FusedKernel> fused_kernel_of(const Network& net, const DeviceLimits& limits) {
  using First = typename Model::First;
  using Second = typename Model::Second;
  LayerWalk walk(net);
  FusedKernel k;
  const bool fits =
      net.input == Shape{First::kChannels, First::kHeight, First::kWidth} &&
      net.spec.loss == Loss::softmax_cross_entropy && walk.is_convolution<First>() &&
      walk.is_function(k.functions[0]) && walk.is_pool<First>() && walk.is_convolution<Second>() &&
      walk.is_function(k.functions[1]) && walk.is_pool<Second>() && walk.is_dense(Model::kHidden) &&
      walk.is_function(k.functions[2]) && walk.is_dense(Model::kOutputs) && walk.is_end();
  if (!fits) return std::nullopt;
  ensure(net.parameter_count == Fused<Model>::kParameters,
         "the fused kernel has another network's parameters");
  const auto take = [&]<FusedWeights weights>() {
    constexpr std::size_t kBytes = fused_bytes<Model, weights, transforms>();
    if constexpr (kBytes > kMostShared) {
      return false;
    } else {
      k.sum = fused_sum_kernel<Model, weights, transforms>;
      k.shared_bytes = kBytes;
      return kBytes <= limits.shared_bytes;
    }
  };
  if (take.template operator()<FusedWeights::all>() ||
      take.template operator()<FusedWeights::convolutions>())
    return k;
  if constexpr (Fused<Model>::A::kWeightsAreFlat)
    if (take.template operator()<FusedWeights::second_convolution>()) return k;
  return std::nullopt;
}

/// Returns the kernel for linear models and networks with one hidden layer, if the network is one
/// of these and its size pays (kFusedParameters, and a tile of kTileExamples at least).
template <bool transforms>
std::optional<FusedKernel> dense_kernel_of(const Network& net, const DeviceLimits& limits) {
  LayerWalk walk(net);
  FusedKernel k;
  DenseShapes& d = k.dense;
  d.features = net.input.size();
  d.outputs = walk.dense_outputs();
  if (d.outputs > 0 && !walk.is_end()) {
    d.hidden = d.outputs;
    d.outputs = walk.is_function(k.functions[0]) ? walk.dense_outputs() : 0;
  }
  if (d.outputs == 0 || !walk.is_end() || parameters(d) > kFusedParameters) return std::nullopt;
  ensure(net.parameter_count == static_cast<std::size_t>(parameters(d)),
         "the fused kernel has another network's parameters");
  d.tile = 1;
  d.tile = static_cast<int>(
      std::min(std::size_t{kMaxTile}, limits.shared_bytes / fused_bytes(d, transforms)));
  if (d.tile < kTileExamples) return std::nullopt;
  k.shared_bytes = fused_bytes(d, transforms);
  k.sum = d.hidden > 0     ? fused_mlp_kernel<4, true, transforms>
          : d.outputs == 1 ? fused_mlp_kernel<1, false, transforms>
                           : fused_mlp_kernel<4, false, transforms>;
  return k;
}

template <bool transforms>
std::optional<FusedKernel> kernel_for(const Network& net, const DeviceLimits& limits) {
  if (auto k = fused_kernel_of<FusedCnn, transforms>(net, limits)) return k;
  if (auto k = fused_kernel_of<FusedScatterCnn, transforms>(net, limits)) return k;
  return dense_kernel_of<transforms>(net, limits);
}

}  // namespace

std::optional<FusedKernel> fused_kernel_for(const Network& net, const DeviceLimits& limits,
                                            bool transforms) {
  return transforms ? kernel_for<true>(net, limits) : kernel_for<false>(net, limits);
}

Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms) {
  const bool gains = !fused_kernel_for(net, limits, transforms) &&
                     build_layout(net, {.precision = requested}).storage.uses_tensor_cores;
  return gains ? requested : Precision::fp32;
}

FusedNetwork::FusedNetwork(Gpu& gpu, const Network& net, const FusedKernel& kernel,
                           const std::optional<FusedKernel>& transformed, int micro_batch,
                           bool diagnostics)
    : gpu_(gpu),
      kernel_(kernel),
      transformed_(transformed),
      loss_(net.spec.loss),
      groups_(net.groups),
      parameters_(net.parameter_count),
      blocks_(gpu.limits().multiprocessors),
      turn_(kernel.dense.tile > 0 ? kTileExamples : 1),
      capacity_(fused_capacity(blocks_, turn_)),
      slabs_(gpu, static_cast<std::size_t>(blocks_) * parameters_),
      losses_(gpu, diagnostics ? static_cast<std::size_t>(capacity_) : 0),
      squared_norms_(gpu, losses_.size() * static_cast<std::size_t>(groups_)),
      factors_(gpu, squared_norms_.size()) {
  if (micro_batch > 0) capacity_ = std::min(capacity_, micro_batch);
  gpu.allow_shared(kernel_.sum, kernel_.shared_bytes);
  if (transformed_) gpu.allow_shared(transformed_->sum, transformed_->shared_bytes);
}

Unfinished FusedNetwork::sum_clipped(const Drawn& drawn, const ClippedGradient& clip,
                                     FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::clip, drawn.data, drawn.parameters);
  args.clip = clip;
  return sum(kernel_, args, drawn, fixed, tally);
}

Unfinished FusedNetwork::sum_transformed(const Drawn& drawn, const Transform& transform,
                                         FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::clip, drawn.data, drawn.parameters);
  args.dense = transformed_->dense;
  args.transform = transform;
  return sum(*transformed_, args, drawn, fixed, tally);
}

Unfinished FusedNetwork::sum_accepted(const Drawn& drawn, const FusedAcceptance& accept,
                                      float* norms, FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::accept, drawn.data, drawn.parameters);
  args.accept = accept;
  args.norms = norms;
  return sum(kernel_, args, drawn, fixed, tally);
}

void FusedNetwork::forward(const std::uint32_t* count, std::size_t n, const DeviceData& data,
                           const float* parameters, float* logits) {
  FusedSum args = args_of(FusedTask::forward, data, parameters);
  args.batch = {.count = count, .first = 0, .capacity = static_cast<std::int32_t>(n)};
  args.logits = logits;
  launch(gpu_, "fused forward", kernel_.sum, fused_shape(args, kernel_.shared_bytes), args);
}

void FusedNetwork::norms(const std::uint32_t* count, std::size_t n, const DeviceData& data,
                         const float* parameters, float* norms) {
  FusedSum args = args_of(FusedTask::norms, data, parameters);
  args.batch = {.count = count, .first = 0, .capacity = static_cast<std::int32_t>(n)};
  args.norms = norms;
  launch(gpu_, "fused norms", kernel_.sum, fused_shape(args, kernel_.shared_bytes), args);
}

void FusedNetwork::add(const BlockSums& left, FixedPoint* fixed) {
  launch(gpu_, "fused reduce", fused_reduce_kernel,
         FusedReduce{.left = left, .n = static_cast<std::int64_t>(parameters_), .fixed = fixed});
}

Unfinished FusedNetwork::sum(const FusedKernel& kernel, FusedSum args, const Drawn& drawn,
                             FixedPoint* fixed, Tally* tally) {
  args.examples = drawn.examples;
  args.sum_scale = drawn.scale;
  args.slabs = slabs_.get();
  args.losses = losses_.get();
  args.squared_norms = squared_norms_.get();
  args.factors = factors_.get();
  const std::int64_t max_drawn = drawn.room;
  Unfinished left{};
  for (std::int64_t first = 0; first < max_drawn; first += capacity_) {
    if (first > 0) {
      add(left.sums, fixed);
      if (left.tally.total != nullptr) add_tally(gpu_, left.tally);
    }
    const Batch batch{.count = drawn.count,
                      .first = static_cast<std::int32_t>(first),
                      .capacity = static_cast<std::int32_t>(
                          std::min<std::int64_t>(capacity_, max_drawn - first))};
    args.batch = batch;
    slabs_.fill_scratch();
    for (Buffer<float>* b : {&losses_, &squared_norms_, &factors_}) b->fill_scratch();
    launch(gpu_, "fused sum", kernel.sum, fused_shape(args, kernel.shared_bytes), args);
    left.sums = {.batch = batch, .slabs = slabs_.get(), .turn = turn_, .blocks = blocks_};
    if (losses_.size() > 0)
      left.tally = {.batch = batch,
                    .loss = losses_.get(),
                    .squared_norms = squared_norms_.get(),
                    .factors = factors_.get(),
                    .groups = groups_,
                    .total = tally};
  }
  return left;
}

FusedSum FusedNetwork::args_of(FusedTask task, const DeviceData& data,
                               const float* parameters) const {
  return {.task = task,
          .batch = {},
          .examples = nullptr,
          .bytes = data.bytes,
          .floats = data.floats,
          .coded = data.coded,
          .labels = data.labels,
          .scale = data.scale,
          .shift = data.shift,
          .parameters = parameters,
          .functions = {kernel_.functions[0], kernel_.functions[1], kernel_.functions[2]},
          .dense = kernel_.dense,
          .loss = loss_,
          .clip = {},
          .transform = {},
          .accept = {},
          .sum_scale = nullptr,
          .turn = turn_,
          .blocks = blocks_,
          .slabs = nullptr,
          .losses = nullptr,
          .squared_norms = nullptr,
          .factors = nullptr,
          .norms = nullptr,
          .logits = nullptr};
}

}  // namespace cudp::cuda::inline CUDP_SIMT
