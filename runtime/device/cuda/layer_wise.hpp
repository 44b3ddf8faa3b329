#pragma once
// A network's passes over a micro-batch, as a sequence of kernel launches. Gpu is cuda_gpu.hpp's,
// or in tests one that runs the same kernels under the emulator.
#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/clipping/clip.cuh"
#include "kernels/common/fill.cuh"
#include "kernels/layers/activation.cuh"
#include "kernels/layers/group_norm.cuh"
#include "kernels/layers/image.cuh"
#include "kernels/layers/loss.cuh"
#include "kernels/layers/pool.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/coordinates.hpp"
#include "runtime/device/cuda/layout.hpp"
#include "runtime/device/cuda/products.hpp"

namespace cudp::cuda {

/// Examples in device memory; see Dataset.
struct DeviceData {
  const std::uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  const std::uint8_t* labels = nullptr;
  float scale = 1.0f;
  float shift = 0.0f;
};

/// Examples in flight, in whole groups: what the user chose; else 4096 or what a quarter of a
/// gibibyte holds if that is more, but no more than a gibibyte holds.
inline int examples_in_flight(const Network& network, const DeviceGraph& graph, int chosen) {
  constexpr std::int64_t kFloats = std::int64_t{1} << 28;
  constexpr std::int64_t kMost = 32768;
  std::int64_t n = chosen;
  if (chosen <= 0) {
    const std::int64_t fit = kFloats / graph.floats_per_example(network.groups, network.outputs);
    n = std::min(fit, std::max<std::int64_t>(4096, fit / 4));
  }
  n = std::clamp<std::int64_t>(n, 1, kMost);
  const int group = graph.example_group();
  return static_cast<int>((n + group - 1) / group * group);
}

template <class Gpu>
class DeviceNetwork {
 public:
  /// micro_batch: examples in flight at most, 0 to choose. precision, large_dense: see
  /// device_graph.hpp. transforms: whether gradients are ever transformed before they are clipped.
  DeviceNetwork(Gpu& gpu, const Network& network, int micro_batch, Precision precision,
                std::int64_t large_dense, bool transforms = false)
      : gpu_(gpu),
        net_(network),
        graph_(build_device_graph(network, precision, large_dense, gpu.limits())),
        room_(examples_in_flight(network, graph_, micro_batch)),
        products_(gpu, graph_),
        group_parts_(gpu, graph_.group_parts.size()),
        labels_(gpu, per_example(1)),
        correct_(gpu, per_example(1)),
        losses_(gpu, per_example(1)),
        slopes_(gpu, per_example(net_.outputs)),
        statistics_(gpu, per_example(graph_.statistics)),
        gradient_rows_(gpu, per_example(graph_.gradient_rows)),
        parts_(gpu, per_example(graph_.parts())),
        squared_norms_(gpu, per_example(net_.groups)),
        factors_(gpu, per_example(net_.groups)),
        squares_(gpu, transforms ? per_example(widest_dense(&GradientPlan::rows)) : 0),
        transformed_(gpu, transforms ? 2 * per_example(widest_dense(&GradientPlan::columns)) : 0) {
    if (graph_.uses_blas()) gpu_.prepare_blas(precision);
    group_parts_.upload(graph_.group_parts);
    for (const Edge& e : graph_.edges) {
      ensure(
          std::int64_t{room_} * std::max(e.value.size(), e.gradient.size()) < std::int64_t{1} << 31,
          "the micro-batch is too large for 32-bit offsets");
      values_.emplace_back(gpu, per_example(e.value.size()));
      gradients_.emplace_back(gpu, e.has_gradient ? per_example(e.gradient.size()) : 0);
      values_.back().clear();  // borders are zero and stay so
      gradients_.back().clear();
    }
  }

  int room() const { return room_; }
  const DeviceGraph& graph() const { return graph_; }
  const Buffer<Gpu, float>& losses() const { return losses_; }
  const Buffer<Gpu, float>& squared_norms() const { return squared_norms_; }
  const Buffer<Gpu, float>& gradient_rows() const { return gradient_rows_; }

  /// Logits, losses and right answers of the examples of a micro-batch; examples: their numbers in
  /// the data set, or null for 0, 1, ... parameters [d].
  void forward(const Batch& batch, const DeviceData& data, const std::uint32_t* examples,
               const float* parameters, bool with_gradient) {
    start("load", batch_load_kernel,
          BatchLoad{batch, examples, data.bytes, data.floats, data.labels, data.scale, data.shift,
                    graph_.edges.front().value, values_.front().get(), labels_.get()});
    for (const Op& op : graph_.ops)
      std::visit([&](const auto& l) { forward(batch, op, l, parameters + op.parameters); },
                 op.layer->layer);
    const Edge& last = graph_.edges.back();
    ensure(last.value.border == 0, "logits are a flat vector");
    start("loss", batch_loss_kernel,
          BatchLoss{batch, net_.spec.loss, net_.outputs, values_.back().get(), labels_.get(),
                    losses_.get(), correct_.get(), with_gradient ? slopes_.get() : nullptr,
                    with_gradient ? gradients_.back().get() : nullptr, last.gradient});
  }

  /// Gradients by every activation, and squared norms of the parameters' gradients, transformed
  /// where coordinates are given.
  void backward(const Batch& batch, const float* parameters,
                const CoordinatesView* coordinates = nullptr) {
    coordinates_ = coordinates;
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      const Op& op = graph_.ops[i];
      if (op.gives_input_gradient || op.layer->group >= 0)
        std::visit([&](const auto& l) { backward(batch, op, l, parameters + op.parameters); },
                   op.layer->layer);
    }
  }

  void clip(const Batch& batch, const ClipSettings& clip) {
    start("clip", batch_clip_kernel,
          BatchClip{batch, clip, parts_.get(), group_parts_.get(), net_.groups,
                    squared_norms_.get(), factors_.get()});
  }

  /// Accepts candidates instead of clipping; see BatchAccept.
  void accept(const Batch& batch, const ImportanceRule& rule, const RandomStream& stream,
              const std::uint64_t* step, const std::uint32_t* examples, float* norms) {
    start("accept", batch_accept_kernel,
          BatchAccept{batch, rule, stream, step, examples, norms, parts_.get(), group_parts_.get(),
                      net_.groups, squared_norms_.get(), factors_.get()});
  }

  /// Norms of the micro-batch's gradients to norms[batch.first ...].
  void norms(const Batch& batch, float* norms) {
    start("norms", batch_norms_kernel, BatchNorms{batch, parts_.get(), graph_.parts(), norms});
  }

  /// sum [d] += the micro-batch's clipped gradients, as backward() saw them.
  void add_clipped(const Batch& batch, FixedPoint* sum, float inverse_grid) {
    for (const Op& op : graph_.ops) {
      if (op.layer->group < 0) continue;
      const float* const factors = factors_.get() + op.layer->group;
      if (std::holds_alternative<GroupNorm>(op.layer->layer))
        start("group norm sum", weighted_rows_kernel,
              WeightedRows{batch, gradient_rows_.get() + op.rows * room_,
                           static_cast<std::int32_t>(op.parameter_count), factors, net_.groups,
                           sum + op.parameters, inverse_grid, transform_of(op)});
      else
        products_.gradient_sum(
            op, {gradient_of(batch, op), factors, net_.groups, products_.examples_per_block(op),
                 sum + op.parameters, inverse_grid, nullptr, 0, transform_of(op)});
    }
  }

  /// Each example's own gradient to gradients [room, d], but for group norm, whose gradients are
  /// in gradient_rows() by layer.
  void single_gradients(const Batch& batch, float* gradients) {
    for (const Op& op : graph_.ops)
      if (op.layer->group >= 0 && !std::holds_alternative<GroupNorm>(op.layer->layer))
        products_.gradient_sum(
            op, {gradient_of(batch, op), nullptr, 0, 1, nullptr, 0.0f, gradients + op.parameters,
                 static_cast<std::int64_t>(net_.parameter_count)});
  }

  /// *total += what there is to tell of the micro-batch, whose examples were clipped or not.
  void tally(const Batch& batch, bool clipped, Tally* total) {
    start("tally", tally_kernel,
          TallyBatch{batch, losses_.get(), correct_.get(), clipped ? squared_norms_.get() : nullptr,
                     clipped ? factors_.get() : nullptr, net_.groups, total});
  }

 private:
  template <class Args>
  using Kernel = void (*)(Args);
  Transform transform_of(const Op& op) const {
    return coordinates_ != nullptr ? coordinates_->of(op) : Transform{};
  }
  std::int64_t widest_dense(std::int32_t GradientPlan::*side) const {
    std::int64_t widest = 0;
    for (const Op& op : graph_.ops)
      if (std::holds_alternative<Dense>(op.layer->layer))
        widest = std::max<std::int64_t>(widest, op.gradient.*side);
    return widest;
  }

  std::size_t per_example(std::int64_t floats) const {
    return static_cast<std::size_t>(floats) * static_cast<std::size_t>(room_);
  }

  template <class Args>
  void start(const char* name, Kernel<Args> kernel, const Args& args) {
    validate(args);
    gpu_.launch(name, kernel, launch_shape(args), args);
  }
  WeightGradient gradient_of(const Batch& batch, const Op& op) const {
    const GradientPlan& g = op.gradient;
    return {batch,
            products_.factor(values_[op.in].get(), g.x),
            products_.factor(gradients_[op.out].get(), g.dy),
            g.rows,
            g.columns,
            g.terms_per_example,
            g.patch};
  }
  float* parts_of(const Batch& batch, const Op& op) const {
    return parts_.get() + std::int64_t{op.first_part} * batch.room;
  }
  const float* bias_of(const Op& op, const float* weight) const {
    return weight + op.parameter_count - op.layer->out.channels;
  }

  // One layer. `weight`: its parameters.

  void forward(const Batch& batch, const Op& op, const Conv2d&, const float* weight) {
    products_.multiply("forward", batch, op.forward, op.precision, values_[op.in].get(), weight,
                       bias_of(op, weight), values_[op.out].get(), graph_.edges[op.out].value);
  }
  void forward(const Batch& batch, const Op& op, const Dense&, const float* weight) {
    const float* const x = values_[op.in].get();
    float* const y = values_[op.out].get();
    if (!op.uses_blas) {
      products_.multiply("forward", batch, op.forward, op.precision, x, weight, bias_of(op, weight),
                         y);
      return;
    }
    const int in = op.gradient.rows;
    const int out = op.gradient.columns;
    start("fill", fill_rows_kernel, FillRows{bias_of(op, weight), out, slabs(batch) * kSlab, y});
    for_each_slab(batch, [&](std::int64_t e) {  // y += x weight'
      gpu_.sgemm('T', 'N', out, kSlab, in, weight, in, x + e * in, in, 1.0f, y + e * out, out);
    });
  }
  void forward(const Batch& batch, const Op& op, const Activate& f, const float*) {
    start("activation", batch_activation_kernel,
          BatchActivation{batch,
                          f,
                          values_[op.in].get(),
                          graph_.edges[op.in].value,
                          nullptr,
                          {},
                          values_[op.out].get(),
                          graph_.edges[op.out].value});
  }
  void forward(const Batch& batch, const Op& op, const MaxPool2d& p, const float*) {
    pool_forward(batch, op, true, p.kernel, p.stride);
  }
  void forward(const Batch& batch, const Op& op, const AvgPool2d& p, const float*) {
    pool_forward(batch, op, false, p.kernel, p.stride);
  }
  void pool_forward(const Batch& batch, const Op& op, bool is_max, int kernel, int stride) {
    BatchPool a{};
    a.batch = batch;
    a.is_max = is_max;
    a.kernel = kernel;
    a.stride = stride;
    a.x = values_[op.in].get();
    a.x_planes = graph_.edges[op.in].value;
    a.y = values_[op.out].get();
    a.y_planes = graph_.edges[op.out].value;
    start("pool", batch_pool_kernel, a);
  }
  void forward(const Batch& batch, const Op& op, const GroupNorm& n, const float* weight) {
    start("group norm", batch_group_norm_kernel,
          BatchGroupNorm{batch, n.groups, n.epsilon, weight, bias_of(op, weight),
                         values_[op.in].get(), graph_.edges[op.in].value, values_[op.out].get(),
                         graph_.edges[op.out].value, statistics_.get() + op.statistics * room_});
  }

  // Row-major matrices are their own transposes to BLAS.
  static int slabs(const Batch& batch) { return (batch.room + kSlab - 1) / kSlab; }
  template <class Body>
  void for_each_slab(const Batch& batch, const Body& body) {
    for (int i = 0; i < slabs(batch); ++i) body(std::int64_t{i} * kSlab);
  }

  void input_gradient(const Batch& batch, const Op& op, const float* weight) {
    if (!op.gives_input_gradient) return;
    if (op.uses_blas) {
      const int in = op.gradient.rows;
      const int out = op.gradient.columns;
      for_each_slab(batch, [&](std::int64_t e) {  // dx = dy weight
        gpu_.sgemm('N', 'N', in, kSlab, out, weight, in, gradients_[op.out].get() + e * out, out,
                   0.0f, gradients_[op.in].get() + e * in, in);
      });
      return;
    }
    for (const ProductPlan& p : op.input_gradient)
      products_.multiply("input gradient", batch, p, op.precision, gradients_[op.out].get(), weight,
                         nullptr, gradients_[op.in].get(), graph_.edges[op.in].gradient);
  }
  void backward(const Batch& batch, const Op& op, const Conv2d&, const float* weight) {
    const WeightGradientNorm norm{gradient_of(batch, op), parts_of(batch, op), transform_of(op)};
    products_.gradient_norm(op, norm);
    input_gradient(batch, op, weight);
  }
  void backward(const Batch& batch, const Op& op, const Dense&, const float* weight) {
    if (coordinates_ == nullptr)
      start("dense gradient norm", dense_gradient_norm_kernel,
            DenseGradientNorm{batch, values_[op.in].get(), op.gradient.rows,
                              gradients_[op.out].get(), op.gradient.columns, parts_of(batch, op)});
    else
      transformed_norm(batch, op);
    input_gradient(batch, op, weight);
  }
  /// The squared norm of a dense layer's transformed gradient, from two products; see dense_square.
  void transformed_norm(const Batch& batch, const Op& op) {
    const int in = op.gradient.rows;
    const int out = op.gradient.columns;
    const float* const x = values_[op.in].get();
    float* const u = transformed_.get();
    float* const v = u + static_cast<std::int64_t>(batch.room) * out;
    start("square", square_rows_kernel,
          SquareRows{x, squares_.get(), static_cast<std::int64_t>(batch.room) * in});
    ProductPlan plan = op.forward;
    plan.out_row = {.table = -1, .period = 0, .outer = 0, .inner = out};
    plan.out_column = {};
    const float* const square = coordinates_->square + op.parameters;
    const float* const product = coordinates_->product + op.parameters;
    constexpr Precision kExact = Precision::fp32;  // dense_square_error counts on it
    products_.multiply("transformed norm", batch, plan, kExact, squares_.get(), square,
                       bias_of(op, square), u);
    products_.multiply("transformed norm", batch, plan, kExact, x, product, bias_of(op, product),
                       v);
    start("dense transformed norm", dense_transformed_norm_kernel,
          DenseTransformedNorm{batch, gradients_[op.out].get(), u, v,
                               coordinates_->shifts + (&op - graph_.ops.data()), in, out,
                               parts_of(batch, op)});
  }
  void backward(const Batch& batch, const Op& op, const Activate& f, const float*) {
    start("activation gradient", batch_activation_kernel,
          BatchActivation{batch, f, gradients_[op.out].get(), graph_.edges[op.out].gradient,
                          values_[op.out].get(), graph_.edges[op.out].value,
                          gradients_[op.in].get(), graph_.edges[op.in].gradient});
  }
  void backward(const Batch& batch, const Op& op, const MaxPool2d& p, const float*) {
    pool_backward(batch, op, true, p.kernel, p.stride);
  }
  void backward(const Batch& batch, const Op& op, const AvgPool2d& p, const float*) {
    pool_backward(batch, op, false, p.kernel, p.stride);
  }
  void pool_backward(const Batch& batch, const Op& op, bool is_max, int kernel, int stride) {
    BatchPool a{};
    a.batch = batch;
    a.is_max = is_max;
    a.kernel = kernel;
    a.stride = stride;
    a.x = values_[op.in].get();
    a.x_planes = graph_.edges[op.in].value;
    a.dy = gradients_[op.out].get();
    a.dy_planes = graph_.edges[op.out].gradient;
    a.dx = gradients_[op.in].get();
    a.dx_planes = graph_.edges[op.in].gradient;
    start("pool gradient", batch_pool_backward_kernel, a);
  }
  void backward(const Batch& batch, const Op& op, const GroupNorm& n, const float* weight) {
    const Planes none{};
    start("group norm gradient", batch_group_norm_backward_kernel,
          BatchGroupNormBackward{
              batch, n.groups, weight, values_[op.in].get(), graph_.edges[op.in].value,
              gradients_[op.out].get(), graph_.edges[op.out].gradient,
              statistics_.get() + op.statistics * room_,
              op.gives_input_gradient ? gradients_[op.in].get() : nullptr,
              op.gives_input_gradient ? graph_.edges[op.in].gradient : none,
              gradient_rows_.get() + op.rows * room_, parts_of(batch, op), transform_of(op)});
  }

  Gpu& gpu_;
  const Network& net_;
  DeviceGraph graph_;
  int room_;
  DeviceProducts<Gpu> products_;
  Buffer<Gpu, std::int32_t> group_parts_;
  std::vector<Buffer<Gpu, float>> values_;     // by edge, [room, value planes]
  std::vector<Buffer<Gpu, float>> gradients_;  // by edge, [room, gradient planes]
  Buffer<Gpu, std::uint8_t> labels_;
  Buffer<Gpu, std::uint8_t> correct_;
  Buffer<Gpu, float> losses_;
  Buffer<Gpu, float> slopes_;         // [room, outputs]
  Buffer<Gpu, float> statistics_;     // group norm, by layer [room, 2 groups]
  Buffer<Gpu, float> gradient_rows_;  // group norm, by layer [room, 2 channels]
  Buffer<Gpu, float> parts_;          // [parts, room of the batch]
  Buffer<Gpu, float> squared_norms_;  // [room, groups]
  Buffer<Gpu, float> factors_;        // [room, groups]
  Buffer<Gpu, float> squares_;        // of transformed_norm
  Buffer<Gpu, float> transformed_;
  const CoordinatesView* coordinates_ = nullptr;  // of the last backward()
};

}  // namespace cudp::cuda
