#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/fused/fused_kernel.cuh"
#include "kernels/fused/recurrent_kernel.cuh"
#include "kernels/fused/reduce.cuh"
#include "kernels/step/packed_image.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layout.hpp"
#include "runtime/device/cuda/step_end.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns whether a network has exactly the layers of `list`, its input shape and cross-entropy
/// loss. If so, writes the network's activation functions to `functions`. They must be increasing
/// functions, because the kernel may apply them before or after a max pool, which must not change
/// the result. n: number of layers in `list`.
template <std::size_t n>
bool matches(const Network& net, const fused::LayerList<n>& list,
             std::array<Activate, 4>& functions) {
  const auto& [channels, height, width] = list.image;
  if (net.input != Shape{channels, height, width} || net.layers.size() != n ||
      net.spec.loss != Loss::softmax_cross_entropy)
    return false;
  std::size_t function = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const fused::Layer& want = list.layers[i];
    const Layer& is = net.layers[i].layer;
    const auto* const convolution = std::get_if<Conv2d>(&is);
    const auto* const pool = std::get_if<MaxPool2d>(&is);
    const auto* const dense = std::get_if<Dense>(&is);
    const auto* const f = std::get_if<Activate>(&is);
    bool same = false;
    switch (want.kind) {
      case fused::LayerKind::convolution:
        same = convolution != nullptr && convolution->out_channels == want.out &&
               convolution->kernel == want.kernel && convolution->stride == want.stride &&
               convolution->pad == want.pad;
        break;
      case fused::LayerKind::pool:
        same = pool != nullptr && pool->kernel == want.kernel && pool->stride == want.stride;
        break;
      case fused::LayerKind::dense:
        same = dense != nullptr && dense->out == want.out;
        break;
      case fused::LayerKind::function:
        same = f != nullptr && increases(*f);
        if (same) functions[function++] = *f;
        break;
    }
    if (!same) return false;
  }
  return true;
}

/// Adds the fused kernel for plan P to `to`, if the device's shared memory is large enough for it.
/// The kernel is not even compiled if it needs more shared memory than any device has
/// (fused::kMaxShared). limits: limits of the device. functions: the network's activations.
template <class P>
void add_plan(const DeviceLimits& limits, const std::array<Activate, 4>& functions,
              std::vector<FusedKernel>& to) {
  constexpr std::size_t kBytes = fused::shared_bytes<P>();
  if constexpr (kBytes <= fused::kMaxShared) {
    if (kBytes > limits.shared_bytes) return;
    to.push_back({.sum = fused::fused_kernel<P>,
                  .shared_bytes = kBytes,
                  .functions = functions,
                  .examples = P::kExamples,
                  .wants_bytes = P::kInput == fused::Input::bytes,
                  .packing = {.places = fused::Packed<P>::places,
                              .image = fused::Packed<P>::image,
                              .low = fused::Packed<P>::kLow}});
  }
}

/// Returns the fused kernels for networks with exactly the layers of N, which has convolutions,
/// that fit the device; none if `net` is another network. has_bytes: whether N's features may be
/// bytes, for which there are additional kernels. transforms: whether the kernels add transformed
/// gradients; fewer kernels support this, because it needs more memory accesses. limits: limits of
/// the device. precision: precision of the matrix products.
template <class N, bool has_bytes, bool transforms>
std::vector<FusedKernel> tensor_kernels_of(const Network& net, const DeviceLimits& limits,
                                           Precision precision) {
  using fused::Input, fused::Split;
  std::array<Activate, 4> functions{};
  std::vector<FusedKernel> kernels;
  if (!matches(net, N::kLayers, functions)) return kernels;
  ensure(net.parameter_count == static_cast<std::size_t>(fused::stages_of(N::kLayers).parameters),
         "the fused kernel has another network's parameters");
  const auto add = [&]<fused::Split split, fused::Input input, int... examples>(
      std::integer_sequence<int, examples...>) {
    (add_plan<fused::Plan<N, split, input, examples, transforms>>(limits, functions, kernels), ...);
  };
  using Any = std::conditional_t<transforms, std::integer_sequence<int, 4, 1>,
                                 std::integer_sequence<int, 4, 2, 1>>;
  using Few = std::conditional_t<transforms, std::integer_sequence<int, 1>,
                                 std::integer_sequence<int, 2, 1>>;
  if (precision == Precision::tf32) {
    if constexpr (has_bytes) add.template operator()<Split::forward, Input::bytes>(Any());
    add.template operator()<Split::forward, Input::numbers>(Few());
  } else {
    add.template operator()<Split::all, Input::numbers>(Few());
  }
  return kernels;
}

/// Returns whether a network has exactly the layers of `want`, a network for texts. If so, writes
/// its two activation functions to `functions`. net: the network.
bool matches(const Network& net, const fused::TextLayers& want,
             std::array<Activate, 4>& functions) {
  const std::vector<NetworkLayer>& l = net.layers;
  if (l.size() != 7 || net.spec.loss != Loss::softmax_cross_entropy || net.text.words == 0 ||
      net.outputs != want.outputs)
    return false;
  const auto is_dense = [](const Layer& layer, int out, bool per_token) {
    const auto* const d = std::get_if<Dense>(&layer);
    return d != nullptr && d->out == out && d->per_token == per_token;
  };
  const auto* const embedding = std::get_if<Embedding>(&l[0].layer);
  const auto* const recurrent = std::get_if<Recurrent>(&l[3].layer);
  const Activate* const f[] = {std::get_if<Activate>(&l[2].layer),
                               std::get_if<Activate>(&l[5].layer)};
  if (embedding == nullptr || embedding->trainable || net.text.columns != want.columns ||
      recurrent == nullptr ||
      (recurrent->cell == Cell::gru) != (want.cell == fused::TextCell::gru) ||
      recurrent->output != RecurrentOutput::last || recurrent->hidden != want.hidden ||
      recurrent->directions() != want.directions || !is_dense(l[1].layer, want.words, true) ||
      !is_dense(l[4].layer, want.head, false) || !is_dense(l[6].layer, want.outputs, false) ||
      f[0] == nullptr || f[1] == nullptr)
    return false;
  functions = {*f[0], *f[1]};
  return true;
}

/// Returns the fused kernels for the network for texts N, in the order of the number of texts that
/// a thread block processes at once: 1, 2, 4, ...; none if `net` is another network. transforms:
/// whether the kernels add transformed gradients. limits: limits of the device. precision:
/// precision of the matrix products.
template <class N, bool transforms>
std::vector<FusedKernel> text_kernels_of(const Network& net, const DeviceLimits& limits,
                                         Precision precision) {
  using P = fused::TextPlan<N, transforms>;
  std::vector<FusedKernel> kernels;
  std::array<Activate, 4> functions{};
  if (precision != Precision::tf32 || !matches(net, N::kLayers, functions)) return kernels;
  ensure(net.parameter_count == static_cast<std::size_t>(P::kParameters),
         "the fused kernel has another network's parameters");
  const int places = net.input.size();
  for (int texts = 1; texts <= fused::kMaxTexts; texts *= 2) {
    const std::size_t bytes = fused::text_shared_bytes<P>(texts, places);
    if (bytes > limits.shared_bytes) break;
    kernels.push_back({.sum = fused::recurrent_kernel<P>,
                       .shared_bytes = bytes,
                       .functions = functions,
                       .threads = P::kThreads,
                       .examples = texts,
                       .places = places,
                       .scratch = P::scratch_bytes(texts, places)});
  }
  return kernels;
}

template <bool transforms>
std::vector<FusedKernel> kernels_for(const Network& net, const DeviceLimits& limits,
                                     Precision precision) {
  if (!net.frozen.empty()) return {};  // the kernels train all layers
  auto kernels = tensor_kernels_of<fused::Cnn, true, transforms>(net, limits, precision);
  if (kernels.empty())
    kernels = tensor_kernels_of<fused::ScatterCnn, false, transforms>(net, limits, precision);
  if (kernels.empty())
    kernels = text_kernels_of<fused::ImdbRnn, transforms>(net, limits, precision);
  if (kernels.empty())
    kernels = text_kernels_of<fused::ImdbGru, transforms>(net, limits, precision);
  if (kernels.empty())
    kernels = text_kernels_of<fused::ImdbOneWay, transforms>(net, limits, precision);
  return kernels.empty() ? dense_kernels_for(net, limits, transforms) : kernels;
}

/// Returns the time that a thread block needs for a group of this many examples, relative to the
/// time for a group of one. Measured in clock cycles (bench/roofline.md).
double group_cost(int examples) {
  return examples == 8 ? 3.1 : examples == 4 ? 1.75 : examples == 2 ? 1.28 : 1.0;
}

/// Returns the largest scratch memory per block that one of the kernels needs [bytes].
std::int64_t largest_scratch(const std::vector<FusedKernel>& kernels) {
  std::int64_t bytes = 0;
  for (const FusedKernel& k : kernels) bytes = std::max(bytes, k.scratch);
  return bytes;
}

}  // namespace

std::vector<FusedKernel> fused_kernels_for(const Network& net, const DeviceLimits& limits,
                                           Precision precision, bool transforms) {
  return transforms ? kernels_for<true>(net, limits, precision)
                    : kernels_for<false>(net, limits, precision);
}

Precision device_precision(const Network& net, const DeviceLimits& limits, Precision requested,
                           bool transforms) {
  const auto kernels = fused_kernels_for(net, limits, requested, transforms);
  const bool gains = kernels.empty()
                         ? build_layout(net, {.precision = requested}).storage.uses_tensor_cores
                         : kernels[0].has_tensor_cores();
  return gains ? requested : Precision::fp32;
}

FusedNetwork::FusedNetwork(Gpu& gpu, const Network& net, std::vector<FusedKernel> kernels,
                           std::vector<FusedKernel> transformed, int micro_batch, bool diagnostics)
    : gpu_(gpu),
      kernels_(std::move(kernels)),
      transformed_(std::move(transformed)),
      loss_(net.spec.loss),
      huber_(net.spec.huber),
      groups_(net.groups),
      parameters_(net.parameter_count),
      blocks_(gpu.limits().multiprocessors),
      stripe_(kernels_.at(0).stripe()),
      capacity_(fused_capacity(blocks_, stripe_)),
      slabs_(gpu, static_cast<std::size_t>(blocks_) * parameters_),
      scratch_(gpu, static_cast<std::size_t>(blocks_ * largest_scratch(kernels_))),
      losses_(gpu, diagnostics ? static_cast<std::size_t>(capacity_) : 0),
      squared_norms_(gpu, losses_.size() * static_cast<std::size_t>(groups_)),
      factors_(gpu, squared_norms_.size()) {
  if (micro_batch > 0) capacity_ = std::min(capacity_, micro_batch);
  for (const auto* const list : {&kernels_, &transformed_})
    for (const FusedKernel& k : *list) gpu.allow_shared(k.sum, k.shared_bytes);
  const FusedPacking& packing = kernels_[0].packing;
  if (packing.places == nullptr) return;
  const std::vector<PackedPlace> places = packing.places();
  const std::vector<unsigned char> image = packing.image();
  places_ = {gpu, places.size()};
  places_.upload(places);
  image_ = {gpu, image.size()};
  image_.upload(image);
}

PackedImage FusedNetwork::packed() const {
  if (places_.size() == 0) return {};
  return {.places = places_.get(), .bytes = image_.get(), .low = kernels_[0].packing.low};
}

void FusedNetwork::pack(const float* parameters) {
  if (places_.size() == 0) return;
  launch(gpu_, "pack", pack_kernel,
         PackParameters{.image = packed(),
                        .parameters = parameters,
                        .n = static_cast<std::int64_t>(parameters_)});
}

const FusedKernel& FusedNetwork::choose(const std::vector<FusedKernel>& kernels,
                                        const DeviceData& data, double examples) const {
  const FusedKernel* best = nullptr;
  double least = 0.0;
  for (const FusedKernel& k : kernels) {
    if (!k.takes(data)) continue;
    const double cost = std::max(1.0, examples / (blocks_ * k.examples)) * group_cost(k.examples);
    if (best != nullptr && cost >= least) continue;
    best = &k;
    least = cost;
  }
  ensure(best != nullptr, "no fused kernel takes these features");
  return *best;
}

void FusedNetwork::launch_kernel(const char* name, const FusedKernel& kernel, FusedSum args) {
  args.dense = kernel.dense;
  if (kernel.places > 0) args.texts.group = kernel.examples;
  scratch_.fill_scratch();
  launch(gpu_, name, kernel.sum, fused_shape(args, kernel.shared_bytes, kernel.threads), args);
}

Unfinished FusedNetwork::sum_clipped(const Drawn& drawn, const ClippedGradient& clip,
                                     FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::clip, drawn.data, drawn.parameters);
  args.clip = clip;
  return sum(kernels_, args, drawn, fixed, tally);
}

Unfinished FusedNetwork::sum_transformed(const Drawn& drawn, const Transform& transform,
                                         FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::clip, drawn.data, drawn.parameters);
  args.transform = transform;
  return sum(transformed_, args, drawn, fixed, tally);
}

Unfinished FusedNetwork::sum_accepted(const Drawn& drawn, const FusedAcceptance& accept,
                                      float* norms, FixedPoint* fixed, Tally* tally) {
  FusedSum args = args_of(FusedTask::accept, drawn.data, drawn.parameters);
  args.accept = accept;
  args.norms = norms;
  return sum(kernels_, args, drawn, fixed, tally);
}

void FusedNetwork::forward(const std::uint32_t* count, std::size_t n, const DeviceData& data,
                           const float* parameters, float* logits) {
  FusedSum args = args_of(FusedTask::forward, data, parameters);
  args.batch = {.count = count, .first = 0, .capacity = static_cast<std::int32_t>(n)};
  args.logits = logits;
  launch_kernel("fused forward", choose(kernels_, data, static_cast<double>(n)), args);
}

void FusedNetwork::norms(const std::uint32_t* count, std::size_t n, const DeviceData& data,
                         const float* parameters, float* norms) {
  FusedSum args = args_of(FusedTask::norms, data, parameters);
  args.batch = {.count = count, .first = 0, .capacity = static_cast<std::int32_t>(n)};
  args.norms = norms;
  launch_kernel("fused norms", choose(kernels_, data, static_cast<double>(n)), args);
}

void FusedNetwork::add(const BlockSums& block_sums, FixedPoint* fixed) {
  launch(
      gpu_, "fused reduce", fused_reduce_kernel,
      FusedReduce{
          .block_sums = block_sums, .n = static_cast<std::int64_t>(parameters_), .fixed = fixed});
}

Unfinished FusedNetwork::sum(const std::vector<FusedKernel>& kernels, FusedSum args,
                             const Drawn& drawn, FixedPoint* fixed, Tally* tally) {
  const FusedKernel& kernel = choose(kernels, drawn.data, drawn.expected);
  args.examples = drawn.examples;
  args.sum_scale = drawn.scale;
  args.slabs = slabs_.get();
  args.losses = losses_.get();
  args.squared_norms = squared_norms_.get();
  args.factors = factors_.get();
  const std::int64_t max_drawn = drawn.max_examples;
  Unfinished unfinished{};
  for (std::int64_t first = 0; first < max_drawn; first += capacity_) {
    if (first > 0) {
      add(unfinished.sums, fixed);
      if (unfinished.tally.total != nullptr) add_tally(gpu_, unfinished.tally);
    }
    const Batch batch{.count = drawn.count,
                      .first = static_cast<std::int32_t>(first),
                      .capacity = static_cast<std::int32_t>(
                          std::min<std::int64_t>(capacity_, max_drawn - first))};
    args.batch = batch;
    slabs_.fill_scratch();
    for (Buffer<float>* b : {&losses_, &squared_norms_, &factors_}) b->fill_scratch();
    launch_kernel("fused sum", kernel, args);
    unfinished.sums = {.batch = batch, .slabs = slabs_.get(), .stripe = stripe_, .blocks = blocks_};
    if (losses_.size() > 0)
      unfinished.tally = {.batch = batch,
                          .loss = losses_.get(),
                          .squared_norms = squared_norms_.get(),
                          .factors = factors_.get(),
                          .groups = groups_,
                          .total = tally};
  }
  return unfinished;
}

FusedSum FusedNetwork::args_of(FusedTask task, const DeviceData& data,
                               const float* parameters) const {
  const std::array<Activate, 4>& f = kernels_[0].functions;
  return {.task = task,
          .batch = {},
          .examples = nullptr,
          .bytes = data.bytes,
          .floats = data.floats,
          .coded = data.coded,
          .texts = {.of = data.texts, .places = kernels_[0].places, .scratch = scratch_.get()},
          .labels = data.labels,
          .targets = data.targets,
          .huber = huber_,
          .class_weights = data.class_weights,
          .scale = data.scale,
          .shift = data.shift,
          .parameters = parameters,
          .packed = image_.size() > 0 ? image_.get() : nullptr,
          .functions = {f[0], f[1], f[2], f[3]},
          .dense = kernels_[0].dense,
          .loss = loss_,
          .clip = {},
          .transform = {},
          .accept = {},
          .sum_scale = nullptr,
          .stripe = stripe_,
          .blocks = blocks_,
          .slabs = nullptr,
          .losses = nullptr,
          .squared_norms = nullptr,
          .factors = nullptr,
          .norms = nullptr,
          .logits = nullptr};
}

}  // namespace cudp::cuda::inline CUDP_SIMT
