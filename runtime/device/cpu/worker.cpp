#include "runtime/device/cpu/worker.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/common/fixed_point.hpp"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/scratch_fill.hpp"

namespace cudp::cpu {
namespace {

/// Maximum number of examples whose contributions are added up in 32-bit integers, so that there is
/// no overflow: each number of a contribution is at most kMaxUnits times the grid.
constexpr std::size_t kMaxInUnits = 256;
static_assert(2.0 * kMaxInUnits * kMaxUnits <= 0x1p31);

/// Returns the number of examples that a worker processes at once: the largest multiple of 4 for
/// which all activations fit into the second-level cache, but at least the number that the layers
/// require (min_in_flight, so that enough examples share each read of the weights), and at most
/// l.chunk. l: the memory layout of the network.
int examples_in_flight(const CpuLayout& l) {
  constexpr std::int64_t kCacheFloats = 196'608;  // 768 KB
  const std::int64_t fit = kCacheFloats / std::max<std::int64_t>(1, l.storage.values);
  return static_cast<int>(std::clamp<std::int64_t>(fit / 4 * 4, l.min_in_flight, l.chunk));
}

}  // namespace

Worker::Worker(const CpuLayout& layout, const CpuKernels& kernels,
               std::span<const float> class_weights)
    : layout_(layout),
      class_weights_(class_weights),
      w_(layout.storage, layout.network->groups, examples_in_flight(layout), kernels),
      units_(to_size(layout.storage.packed)),
      totals_(to_size(layout.storage.packed)) {}

template <class Body>
void Worker::for_each_part(const Dataset& data, std::span<const std::uint32_t> examples,
                           const Weights& weights, const Body& body) {
  ensure(examples.size() <= to_size(layout_.chunk), "too many examples in a chunk");
  const bool in_file = data.rows != nullptr;
  w_.data = in_file ? &fetched_.fetch(data, examples) : &data;
  const std::span<const std::uint32_t> indices = in_file ? fetched_.indices() : examples;
  w_.weights = weights;
  for (std::size_t i = 0; i < examples.size(); i += to_size(w_.in_flight())) {
    const std::size_t count = std::min(to_size(w_.in_flight()), examples.size() - i);
    w_.examples = indices.subspan(i, count);
    numbers_ = examples.subspan(i, count);
    if (const auto fill = scratch_fill()) w_.fill(*fill);
    body(i, static_cast<int>(w_.examples.size()));
  }
}

void Worker::forward(int count) {
  const auto& layers = layout_.layers;
  for (int e = 0; e < count; ++e) {
    for (const ValueRange& z : layout_.zeros) std::fill_n(w_.values(e) + z.first, z.count, 0.0f);
    for (std::size_t i = 0; i < layout_.first_together; ++i) layers[i]->forward(w_, e, 1);
  }
  for (std::size_t i = layout_.first_together; i < layers.size(); ++i)
    layers[i]->forward(w_, 0, count);
}

std::optional<GradientSum> Worker::sum_of(const GradientUse& use) {
  const auto rounded = [this](float inverse_grid) {
    return GradientSum{.units = units_.data(), .inverse_grid = inverse_grid};
  };
  if (const auto* whole = std::get_if<AddWhole>(&use)) return GradientSum{.plain = whole->sum};
  if (const auto* clipped = std::get_if<AddClipped>(&use)) return rounded(clipped->inverse_grid);
  if (const auto* accepted = std::get_if<AddAccepted>(&use)) return rounded(accepted->inverse_grid);
  if (const auto* moved = std::get_if<AddTransformed>(&use)) return rounded(moved->inverse_grid);
  return std::nullopt;
}

void Worker::run_part(int count, const GradientUse& use, ExampleRecord* records) {
  const std::optional<GradientSum> sum = sum_of(use);
  forward(count);
  float losses[kMaxChunk];
  for (int e = 0; e < count; ++e) losses[e] = begin_backward(e, use);
  backward_together(count);
  for (int e = 0; e < count; ++e) {
    backward_example(e);
    ExampleRecord record{.loss = losses[e]};
    choose_factors(e, use, record);
    if (sum) add_example(e, *sum);
    if (records != nullptr) records[e] = record;
  }
  if (sum) add_together(count, *sum);
}

float Worker::class_weight(int example) const {
  if (class_weights_.empty()) return 1.0f;
  return class_weights_[w_.data->labels[w_.examples[to_size(example)]]];
}

float Worker::begin_backward(int example, const GradientUse& use) {
  const Network& network = *layout_.network;
  const Loss loss = network.spec.loss;
  const std::uint32_t number = w_.examples[to_size(example)];
  const CpuEdge& last = layout_.edges.back();
  float* const gradient = w_.gradient(last, example);
  const float value = has_target(loss)
                          ? target_loss(loss, logits_of(example)[0], w_.data->targets[number],
                                        network.spec.huber, gradient)
                          : evaluate_loss(loss, logits_of(example), network.outputs,
                                          w_.data->labels[number], gradient);
  std::fill(gradient + network.outputs, gradient + last.size(), 0.0f);
  const bool weighted = std::holds_alternative<MeasureNorm>(use) ||
                        std::holds_alternative<AddAccepted>(use) ||
                        std::holds_alternative<AddTransformed>(use);
  if (!weighted || class_weights_.empty()) return value;
  const float weight = class_weight(example);
  for (int i = 0; i < network.outputs; ++i) gradient[i] *= weight;
  return value;
}

void Worker::backward_together(int count) {
  const std::size_t last = std::max(layout_.first_together, layout_.first_parametric);
  for (std::size_t i = layout_.layers.size(); i-- > last;) {
    const CpuLayer& layer = *layout_.layers[i];
    if (!layer.stores_example_gradient() && !layer.is_frozen()) layer.gradient(w_, 0, count);
    if (i > layout_.first_parametric || layer.needs_backward()) layer.backward(w_, 0, count);
  }
}

void Worker::backward_example(int example) {
  if (const auto fill = scratch_fill()) w_.fill_example(*fill);
  const auto& layers = layout_.layers;
  for (std::size_t i = layout_.first_together; i < layers.size(); ++i)
    if (layers[i]->stores_example_gradient() && layers[i]->has_parameters())
      layers[i]->gradient(w_, example, 1);
  for (std::size_t i = layout_.first_together; i-- > layout_.first_parametric;) {
    const CpuLayer& layer = *layers[i];
    // If gradient() reads no result of backward(), it comes first: backward() may overwrite what it
    // reads.
    if (layer.needs_backward()) layer.backward(w_, example, 1);
    if (!layer.is_frozen()) layer.gradient(w_, example, 1);
    if (!layer.needs_backward() && i > layout_.first_parametric) layer.backward(w_, example, 1);
  }
}

float Worker::squared_norm(int example) {
  float squared = 0.0f;
  for (int g = 0; g < groups(); ++g) squared += w_.norm(example, g);
  return squared;
}

void Worker::choose_factors(int example, const GradientUse& use, ExampleRecord& record) {
  float* const f = w_.factors(example);
  const auto* const clipped = std::get_if<AddClipped>(&use);
  const auto* const transformed = std::get_if<AddTransformed>(&use);
  if (clipped != nullptr || transformed != nullptr) {
    record.squared_norm = clip_factors(clipped != nullptr ? clipped->clip : transformed->clip,
                                       w_.norms(example), groups(), f);
  } else {
    record.squared_norm = squared_norm(example);
    float factor = 1.0f;
    if (const auto* accepted = std::get_if<AddAccepted>(&use)) {
      const std::uint32_t number = numbers_[to_size(example)];
      const auto in_whole = static_cast<std::int64_t>(w_.data->first + number);
      factor = accept_candidate(accepted->rule, accepted->stream, in_whole, record.squared_norm,
                                accepted->norms + number);
    }
    std::fill_n(f, groups(), factor);
  }
  record.finite = std::isfinite(record.squared_norm);
  record.clipped = std::any_of(f, f + groups(), [](float factor) { return factor < 1.0f; });
  if (clipped == nullptr || class_weights_.empty()) return;
  // Multiplies the clip factors by the class weight. The weight is at most 1, so the rounded
  // product is at most the clip factor, and the bound on the norm of the clipped gradient still
  // holds.
  const float weight = class_weight(example);
  for (int g = 0; g < groups(); ++g) f[g] *= weight;
}

void Worker::add_example(int example, const GradientSum& sum) {
  for (std::size_t i = 0; i < layout_.layers.size(); ++i)
    if (!layout_.layers[i]->is_frozen() &&
        (i < layout_.first_together || layout_.layers[i]->stores_example_gradient()))
      layout_.layers[i]->add(w_, example, 1, sum);
}

void Worker::add_together(int count, const GradientSum& sum) {
  for (std::size_t i = layout_.first_together; i < layout_.layers.size(); ++i)
    if (!layout_.layers[i]->stores_example_gradient() && !layout_.layers[i]->is_frozen())
      layout_.layers[i]->add(w_, 0, count, sum);
}

void Worker::add(const Dataset& data, std::span<const std::uint32_t> examples,
                 const Weights& weights, const GradientUse& use, ExampleRecord* records) {
  if (in_units_ + examples.size() > kMaxInUnits) {
    w_.kernels.flush_units(units_.data(), totals_.data(), layout_.storage.packed);
    in_units_ = 0;
  }
  in_units_ += examples.size();
  const auto* const transformed = std::get_if<AddTransformed>(&use);
  w_.coordinates = transformed != nullptr ? &transformed->coordinates : nullptr;
  for_each_part(data, examples, weights, [&](std::size_t first, int count) {
    run_part(count, use, records != nullptr ? records + first : nullptr);
  });
  w_.coordinates = nullptr;
}

void Worker::norms(const Dataset& data, std::span<const std::uint32_t> examples,
                   const Weights& weights, float* out) {
  for_each_part(data, examples, weights, [&](std::size_t first, int count) {
    run_part(count, MeasureNorm{}, nullptr);
    for (int e = 0; e < count; ++e) {
      const float norm = std::sqrt(squared_norm(e));
      out[first + to_size(e)] = std::isfinite(norm) ? norm : 0.0f;
    }
  });
}

void Worker::logits(const Dataset& data, std::span<const std::uint32_t> examples,
                    const Weights& weights, float* out) {
  const int outputs = layout_.network->outputs;
  for_each_part(data, examples, weights, [&](std::size_t first, int count) {
    forward(count);
    for (int e = 0; e < count; ++e)
      std::copy_n(logits_of(e), outputs, out + (first + to_size(e)) * to_size(outputs));
  });
}

float Worker::gradient(const Dataset& data, std::uint32_t example, const Weights& weights,
                       float* out, float* squared_norms) {
  ExampleRecord record;
  std::fill_n(out, layout_.storage.packed, 0.0f);
  for_each_part(data, {&example, 1}, weights, [&](std::size_t, int) {
    run_part(1, AddWhole{out}, &record);
    std::copy_n(w_.norms(0), groups(), squared_norms);
  });
  return record.loss;
}

}  // namespace cudp::cpu
