#include "runtime/device/cpu/worker.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/clipping/clip_math.hpp"
#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"

namespace cudp::cpu {
namespace {

/// Activations in flight stay within a second-level cache where that leaves at least four examples
/// for the dense layers to share their weights among.
int examples_in_flight(const Graph& g) {
  constexpr std::int64_t kCacheFloats = 196'608;  // 768 KB
  const std::int64_t fit = kCacheFloats / std::max<std::int64_t>(1, g.value_size);
  return static_cast<int>(std::clamp<std::int64_t>(fit / 4 * 4, 4, g.chunk));
}

}  // namespace

Worker::Worker(const Graph& graph, const CpuKernels& kernels)
    : graph_(graph),
      k_(kernels),
      in_flight_(examples_in_flight(graph)),
      values_(to_size(graph.value_size * in_flight_)),
      shared_gradients_(to_size(graph.shared_gradient_size)),
      batched_gradients_(to_size(graph.batched_gradient_size * in_flight_)),
      direct_(to_size(graph.direct_size)),
      statistics_(to_size(graph.statistics_size * in_flight_)),
      norms_(to_size(static_cast<std::int64_t>(graph.network->groups) * in_flight_)),
      factors_(norms_.size()),
      partial_(to_size(graph.packed_size)),
      totals_(to_size(graph.packed_size)) {}

float* Worker::value(int edge, int example) {
  return values_.data() + graph_.value_size * example + graph_.edges[to_size(edge)].value;
}

float* Worker::gradient_of(int edge, int example) {
  const Edge& e = graph_.edges[to_size(edge)];
  return e.batched ? batched_gradients_.data() + graph_.batched_gradient_size * example + e.gradient
                   : shared_gradients_.data() + e.gradient;
}

float* Worker::result(const Op& op, int example) {
  return value(op.out, example) + graph_.edges[to_size(op.out)].layout.at(0, 0);
}

float* Worker::result_gradient(const Op& op, int example) {
  return gradient_of(op.out, example) + graph_.edges[to_size(op.out)].layout.at(0, 0);
}

float& Worker::norm(int example, int group) {
  return norms_[to_size(static_cast<std::int64_t>(example) * graph_.network->groups + group)];
}

void Worker::load(const Dataset& data, std::span<const std::uint32_t> examples) {
  const auto features = to_size(data.shape.size());
  for (int e = 0; e < static_cast<int>(examples.size()); ++e) {
    const std::size_t at = examples[to_size(e)] * features;
    k_.load_image({.bytes = data.is_bytes() ? data.bytes.data() + at : nullptr,
                   .floats = data.is_bytes() ? nullptr : data.floats.data() + at,
                   .scale = data.scale,
                   .shift = data.shift,
                   .out = value(0, e),
                   .layout = graph_.edges[0].layout});
  }
}

void Worker::run_batch(const Dataset& data, std::span<const std::uint32_t> examples,
                       const Weights& w, const ClipSettings* clip, float* sum,
                       ExampleRecord* records) {
  const int count = static_cast<int>(examples.size());
  const int groups = graph_.network->groups;
  const std::size_t split = graph_.first_batched;
  const std::size_t ops = graph_.ops.size();
  const int last_edge = static_cast<int>(graph_.edges.size()) - 1;
  const int outputs = graph_.network->outputs;

  load(data, examples);
  for (int e = 0; e < count; ++e) forward(0, split, e, 1, w);
  forward(split, ops, 0, count, w);
  float losses[kMaxChunk];
  for (int e = 0; e < count; ++e) {
    float* dy = gradient_of(last_edge, e);
    losses[e] = evaluate_loss(graph_.network->spec.loss, value(last_edge, e), outputs,
                              data.labels[examples[to_size(e)]], dy)
                    .value;
  }
  backward(split, ops, 0, count, w);

  for (int e = 0; e < count; ++e) {
    backward(0, split, e, 1, w);
    float* f = factors_.data() + static_cast<std::ptrdiff_t>(e) * groups;
    float squared = 0.0f;
    if (acceptance_ != nullptr) {
      for (int g = 0; g < groups; ++g) squared += norm(e, g);
      const std::uint32_t example = examples[to_size(e)];
      const float factor = accept_candidate(acceptance_->rule, acceptance_->stream, example,
                                            squared, acceptance_->norms + example);
      std::fill_n(f, groups, factor);
    } else if (clip != nullptr) {
      squared = clip_factors(*clip, &norm(e, 0), groups, f);
    } else {
      std::fill_n(f, groups, 1.0f);
    }
    if (sum != nullptr) accumulate(0, split, e, 1, f, sum);
    if (records != nullptr) {
      bool clipped = false;
      for (int g = 0; g < groups; ++g) clipped |= f[g] < 1.0f;
      records[e] = {losses[e], squared, clipped, std::isfinite(squared)};
    }
  }
  if (sum != nullptr) accumulate(split, ops, 0, count, factors_.data(), sum);
}

void Worker::add_clipped(const Dataset& data, std::span<const std::uint32_t> examples,
                         const Weights& weights, const ClipSettings& clip,
                         const Coordinates* coordinates, const Acceptance* acceptance,
                         double inverse_grid, ExampleRecord* records) {
  ensure(examples.size() <= to_size(graph_.chunk), "too many examples in a chunk");
  coordinates_ = coordinates;
  acceptance_ = acceptance;
  float factor_sum = 0.0f;
  for (std::size_t i = 0; i < examples.size(); i += to_size(in_flight_)) {
    const auto part = examples.subspan(i, std::min(to_size(in_flight_), examples.size() - i));
    run_batch(data, part, weights, &clip, partial_.data(),
              records != nullptr ? records + i : nullptr);
    for (std::size_t e = 0; e < part.size(); ++e)  // one factor for all layers of an example
      factor_sum += factors_[e * to_size(graph_.network->groups)];
  }
  coordinates_ = nullptr;
  acceptance_ = nullptr;
  k_.settle_sum({.acc = partial_.data(),
                 .total = totals_.data(),
                 .inverse_grid = inverse_grid,
                 .n = graph_.packed_size,
                 .transform = coordinates != nullptr ? coordinates->transform : Transform{},
                 .factor_sum = factor_sum});
}

void Worker::norms(const Dataset& data, std::span<const std::uint32_t> examples,
                   const Weights& weights, float* out) {
  const int groups = graph_.network->groups;
  for (std::size_t i = 0; i < examples.size(); i += to_size(in_flight_)) {
    const auto part = examples.subspan(i, std::min(to_size(in_flight_), examples.size() - i));
    run_batch(data, part, weights, nullptr, nullptr, nullptr);
    for (int e = 0; e < static_cast<int>(part.size()); ++e) {
      float squared = 0.0f;
      for (int g = 0; g < groups; ++g) squared += norm(e, g);
      const float n = std::sqrt(squared);
      out[i + to_size(e)] = std::isfinite(n) ? n : 0.0f;
    }
  }
}

void Worker::logits(const Dataset& data, std::span<const std::uint32_t> examples,
                    const Weights& weights, float* out) {
  const int last_edge = static_cast<int>(graph_.edges.size()) - 1;
  const int outputs = graph_.network->outputs;
  for (std::size_t i = 0; i < examples.size(); i += to_size(in_flight_)) {
    const auto part = examples.subspan(i, std::min(to_size(in_flight_), examples.size() - i));
    const int count = static_cast<int>(part.size());
    load(data, part);
    for (int e = 0; e < count; ++e) forward(0, graph_.first_batched, e, 1, weights);
    forward(graph_.first_batched, graph_.ops.size(), 0, count, weights);
    for (int e = 0; e < count; ++e)
      std::copy_n(value(last_edge, e), outputs, out + (i + to_size(e)) * to_size(outputs));
  }
}

float Worker::gradient(const Dataset& data, std::uint32_t example, const Weights& weights,
                       float* out, float* squared_norms) {
  ExampleRecord record;
  std::fill_n(out, graph_.packed_size, 0.0f);
  run_batch(data, {&example, 1}, weights, nullptr, out, &record);
  std::copy_n(&norm(0, 0), graph_.network->groups, squared_norms);
  return record.loss;
}

}  // namespace cudp::cpu
