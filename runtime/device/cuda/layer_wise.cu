#include <algorithm>
#include <utility>

#include "kernels/contribution/clip.cuh"
#include "kernels/layers/loss.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/blas_rows.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "runtime/device/cuda/out_of_memory.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

std::int64_t examples_in_flight(const Network& network, const CudaLayout& layout, int chosen,
                                std::size_t memory, std::int64_t wanted) {
  constexpr std::int64_t kFloats = std::int64_t{1} << 28;
  std::int64_t n = chosen;
  if (chosen <= 0) {
    const std::int64_t floats = layout.floats_per_example(network.groups, network.outputs);
    const std::int64_t fit = kFloats / floats;
    const auto quarter = static_cast<std::int64_t>(memory / 4 / sizeof(float)) / floats;
    n = std::max(std::min(fit, std::max<std::int64_t>(4096, fit / 4)), std::min(quarter, wanted));
  }
  const int group = layout.example_group();
  return (std::clamp<std::int64_t>(n, 1, kMaxInFlight) + group - 1) / group * group;
}

LayerWiseNetwork::LayerWiseNetwork(Gpu& gpu, const Network& network, int micro_batch,
                                   const LayoutChoices& choices,
                                   std::function<void(const std::string&)> say, bool has_weights)
    : gpu_(gpu),
      net_(network),
      micro_batch_(micro_batch),
      transforms_(choices.transforms),
      has_weights_(has_weights),
      say_(std::move(say)),
      layout_(build_layout(network, with_checked_blas(gpu, network, choices, say_))),
      group_parts_(gpu, layout_.storage.group_parts.size()) {
  group_parts_.upload(layout_.storage.group_parts);
  for (const auto& l : layout_.layers) l->prepare(gpu_);
}

bool LayerWiseNetwork::reserve(std::int64_t wanted) {
  const int group = layout_.example_group();
  std::int64_t n = examples_in_flight(net_, layout_, micro_batch_, gpu_.memory(), wanted);
  if (micro_batch_ <= 0) {
    const std::int64_t reached =
        MicroBatch::max_capacity(layout_.edges, layout_.storage) / group * group;
    n = std::min(n, std::max<std::int64_t>(reached, group));
  }
  n = std::min(n, max_in_flight_);
  if (work_ && n <= work_->capacity()) return false;
  for (;;) {
    try {
      allocate(static_cast<int>(n));
      return true;
    } catch (const OutOfMemory&) {
      work_.reset();
      if (n <= group) throw;
      n = (n / 2 + group - 1) / group * group;
      max_in_flight_ = n;
      // The message leaves out the new number: it depends on the number of training examples, which
      // may be private.
      if (say_) say_("device: its memory does not hold the examples in flight, there are fewer");
    }
  }
}

void LayerWiseNetwork::forward(const Batch& batch, const DeviceData& data,
                               const std::uint32_t* examples, const float* parameters) {
  work_->batch = batch;
  work_->data = data;
  work_->examples = examples;
  work_->parameters = parameters;
  work_->fill_scratch();
  for (Buffer<float>* b : {&losses_, &logit_gradients_, &squared_norms_, &clip_factors_})
    b->fill_scratch();
  work_->products.pack(parameters);
  for (const auto& l : layout_.layers) l->forward(*work_);
  ensure(layout_.edges.back().value.border == 0, "logits are a flat vector");
}

void LayerWiseNetwork::logits(const std::uint32_t* count, std::size_t n, const DeviceData& data,
                              const float* parameters, float* to) {
  const auto at_once = static_cast<std::size_t>(capacity());
  const auto row = static_cast<std::size_t>(net_.outputs);
  for (std::size_t first = 0; first < n; first += at_once) {
    const std::size_t live = std::min(at_once, n - first);
    forward({.count = count,
             .first = static_cast<std::int32_t>(first),
             .capacity = static_cast<std::int32_t>(live)},
            data, nullptr, parameters);
    gpu_.copy(to + first * row, work_->value(layout_.edges.back()), live * row * sizeof(float));
  }
}

void LayerWiseNetwork::backward(Weighted weighted, const CoordinatesView* coordinates) {
  const CudaEdge& last = layout_.edges.back();
  const DeviceData& data = work_->data;
  weighted_ = weighted;
  launch(
      gpu_, "loss", loss_kernel,
      device::LossValues{.batch = work_->batch,
                         .loss = net_.spec.loss,
                         .outputs = net_.outputs,
                         .logits = work_->value(last),
                         .label = work_->labels(),
                         .examples = work_->examples,
                         .targets = data.targets,
                         .huber = net_.spec.huber,
                         .class_weights = weighted == Weighted::loss ? data.class_weights : nullptr,
                         .value = losses_.get(),
                         .logit_gradient = logit_gradients_.get(),
                         .gradient = work_->gradient(last),
                         .gradient_planes = last.gradient,
                         .gradient_as = layout_.loss_gradient_as});
  for (std::size_t i = layout_.layers.size(); i-- > 0;) {
    const CudaLayer& l = *layout_.layers[i];
    // Coordinate-wise clipping transforms gradients of trained parameters only.
    work_->coordinates = l.is_frozen() ? nullptr : coordinates;
    if (!l.is_frozen() || (l.gives_input_gradient() && l.backward_needs_gradient()))
      l.gradient(*work_);
    if (l.gives_input_gradient()) l.backward(*work_);
  }
  work_->coordinates = coordinates;
}

void LayerWiseNetwork::clip(const ClippedGradient& clip, const SumScale* scale) {
  launch(gpu_, "clip", clip_kernel,
         device::Clip{.batch = work_->batch,
                      .clip = clip,
                      .scale = scale,
                      .parts = work_->parts(),
                      .group_parts = group_parts_.get(),
                      .groups = net_.groups,
                      .squared_norms = squared_norms_.get(),
                      .factors = work_->factors(),
                      .class_weights = weighs_factors() ? work_->data.class_weights : nullptr,
                      .label = work_->labels(),
                      .clip_factors = clip_factors_.get()});
}

void LayerWiseNetwork::accept(const ImportanceRule* rule, const RandomStream& stream,
                              std::int64_t first, const std::uint64_t* step, float* norms) {
  launch(gpu_, "accept", accept_kernel,
         device::Accept{.batch = work_->batch,
                        .rule = rule,
                        .stream = stream,
                        .first = first,
                        .step = step,
                        .examples = work_->examples,
                        .norms = norms,
                        .parts = work_->parts(),
                        .group_parts = group_parts_.get(),
                        .groups = net_.groups,
                        .squared_norms = squared_norms_.get(),
                        .factors = work_->factors()});
}

void LayerWiseNetwork::norms(float* norms) {
  launch(gpu_, "norms", norms_kernel,
         device::Norms{.batch = work_->batch,
                       .parts = work_->parts(),
                       .part_count = layout_.storage.parts(),
                       .norms = norms});
}

void LayerWiseNetwork::add(FixedPoint* sum, const SumScale* scale) {
  for (const auto& l : layout_.layers)
    if (!l->is_frozen()) l->add(*work_, sum, scale);
}

void LayerWiseNetwork::store_gradients(float* gradients) {
  for (const auto& l : layout_.layers)
    if (!l->is_frozen()) l->store_gradients(*work_, gradients);
}

TallyBatch LayerWiseNetwork::tally(Tally* total) const {
  return {.batch = work_->batch,
          .loss = losses_.get(),
          .squared_norms = squared_norms_.get(),
          .factors = weighs_factors() ? clip_factors_.get() : work_->factors(),
          .groups = net_.groups,
          .total = total};
}

void LayerWiseNetwork::allocate(int capacity) {
  work_.reset();
  for (Buffer<float>* b : {&losses_, &logit_gradients_, &squared_norms_, &clip_factors_}) *b = {};
  work_.emplace(gpu_, layout_.edges, layout_.storage, net_.groups, capacity, transforms_);
  losses_ = {gpu_, work_->per_example(1)};
  logit_gradients_ = {gpu_, work_->per_example(net_.outputs)};
  squared_norms_ = {gpu_, work_->per_example(net_.groups)};
  clip_factors_ = {gpu_, has_weights_ ? work_->per_example(net_.groups) : 0};
}

}  // namespace cudp::cuda::inline CUDP_SIMT
