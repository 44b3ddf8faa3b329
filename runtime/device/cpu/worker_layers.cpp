// The passes of a Worker over one layer: forward, backward with squared norms, and the sum of
// clipped gradients.
#include <algorithm>
#include <variant>

#include "runtime/device/cpu/worker.hpp"

namespace cudp::cpu {
namespace {

/// Edges take whole vectors, zero beyond their own size.
std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }

}  // namespace

void Worker::forward(std::size_t first_op, std::size_t last_op, int first, int count,
                     const Weights& w) {
  for (std::size_t i = first_op; i < last_op; ++i) forward_op(graph_.ops[i], first, count, w);
}

void Worker::forward_op(const Op& op, int first, int count, const Weights& w) {
  const Layer& layer = op.layer->layer;
  const float* weight = w.packed + op.packed;
  const float* bias = weight + static_cast<std::int64_t>(op.rows) * op.columns;
  if (std::holds_alternative<Dense>(layer)) {
    std::int32_t in_row[kMaxChunk];
    std::int32_t out_row[kMaxChunk];
    for (int e = 0; e < count; ++e)
      in_row[e] = out_row[e] = static_cast<std::int32_t>(e * graph_.value_size);
    k_.gather_gemm({.a = value(op.in, first),
                    .b = weight,
                    .out = result(op, first),
                    .a_row = in_row,
                    .out_row = out_row,
                    .out_block = nullptr,
                    .step = op.forward_steps.data(),
                    .bias = bias,
                    .rows = count,
                    .terms = op.rows,
                    .columns = op.columns,
                    .start = GemmStart::bias});
    return;
  }
  for (int e = first; e < first + count; ++e) {
    const float* x = value(op.in, e);
    float* y = value(op.out, e);
    const ImageLayout& in = graph_.edges[to_size(op.in)].layout;
    const ImageLayout& out = graph_.edges[to_size(op.out)].layout;
    if (const auto* conv = std::get_if<Conv2d>(&layer)) {
      k_.conv_forward({.in = in,
                       .out = out,
                       .kernel = conv->kernel,
                       .stride = conv->stride,
                       .product = {.a = x,
                                   .b = weight,
                                   .out = y,
                                   .a_row = op.in_pixel.data(),
                                   .out_row = op.out_pixel.data(),
                                   .out_block = nullptr,
                                   .step = op.forward_steps.data(),
                                   .bias = bias,
                                   .rows = static_cast<int>(op.in_pixel.size()),
                                   .terms = op.rows,
                                   .columns = op.columns,
                                   .start = GemmStart::bias}});
    } else if (const auto* f = std::get_if<Activate>(&layer)) {
      k_.activation_forward({.function = *f, .in = in, .out = out, .x = x, .y = y});
    } else if (std::holds_alternative<MaxPool2d>(layer)) {
      k_.max_pool_forward({.geometry = op.pool, .x = x, .y = y});
    } else if (std::holds_alternative<AvgPool2d>(layer)) {
      k_.average_pool_forward({.geometry = op.pool, .x = x, .y = y});
    } else if (const auto* n = std::get_if<GroupNorm>(&layer)) {
      float* mean = statistics_.data() + graph_.statistics_size * e + op.statistics;
      k_.group_norm_forward({.in = in,
                             .out = out,
                             .groups = n->groups,
                             .epsilon = n->epsilon,
                             .weight = weight,
                             .bias = bias,
                             .x = x,
                             .y = y,
                             .mean = mean,
                             .inverse = mean + n->groups});
    }
  }
}

void Worker::backward(std::size_t first_op, std::size_t last_op, int begin, int count,
                      const Weights& w) {
  for (std::size_t i = last_op; i > std::max(first_op, graph_.first_with_gradient); --i)
    backward_op(graph_.ops[i - 1], begin, count, w);
}

void Worker::backward_op(const Op& op, int begin, int count, const Weights& w) {
  const Layer& layer = op.layer->layer;
  const ImageLayout& in = graph_.edges[to_size(op.in)].layout;
  const ImageLayout& out = graph_.edges[to_size(op.out)].layout;
  if (std::holds_alternative<Dense>(layer)) {
    std::int32_t in_row[kMaxChunk];
    std::int32_t out_row[kMaxChunk];
    for (int e = 0; e < count; ++e) {
      if (coordinates_ == nullptr) {
        // |x dy^T|^2 = |x|^2 |dy|^2, and |dy|^2 for the bias.
        const float x2 = k_.square_sum(value(op.in, begin + e), padded(in.size()));
        const float dy2 = k_.square_sum(result_gradient(op, begin + e), out.stride);
        norm(begin + e, op.layer->group) = (x2 + 1.0f) * dy2;
      }
      out_row[e] =
          static_cast<std::int32_t>(result_gradient(op, begin + e) - result_gradient(op, begin));
      if (op.gives_input_gradient)
        in_row[e] =
            static_cast<std::int32_t>(gradient_of(op.in, begin + e) - gradient_of(op.in, begin));
    }
    if (coordinates_ != nullptr) transformed_dense_squares(op, begin, count);
    if (op.gives_input_gradient)
      k_.gather_gemm({.a = result_gradient(op, begin),
                      .b = w.transposed + op.transposed,
                      .out = gradient_of(op.in, begin),
                      .a_row = out_row,
                      .out_row = in_row,
                      .out_block = nullptr,
                      .step = op.input_steps.data(),
                      .bias = nullptr,
                      .rows = count,
                      .terms = static_cast<int>(op.input_steps.size()),
                      .columns = static_cast<int>(in.size()),
                      .start = GemmStart::zero});
    return;
  }
  for (int e = begin; e < begin + count; ++e) {
    const float* x = value(op.in, e);
    const float* dy = gradient_of(op.out, e);
    float* dx = op.gives_input_gradient ? gradient_of(op.in, e) : nullptr;
    float* direct = direct_.data() + op.direct;
    if (const auto* conv = std::get_if<Conv2d>(&layer)) {
      const int pixels = static_cast<int>(op.in_pixel.size());
      k_.conv_weight_gradient({.in = in,
                               .out = out,
                               .kernel = conv->kernel,
                               .stride = conv->stride,
                               .product = {.a = x,
                                           .b = dy,
                                           .out = direct,
                                           .a_row = op.input_of_row.data(),
                                           .out_row = op.packed_row.data(),
                                           .out_block = nullptr,
                                           .step = op.weight_steps.data(),
                                           .bias = nullptr,
                                           .rows = op.rows,
                                           .terms = pixels,
                                           .columns = op.columns,
                                           .start = GemmStart::zero}});
      k_.column_sum({.b = dy,
                     .step = op.weight_steps.data(),
                     .terms = pixels,
                     .columns = op.columns,
                     .out = direct + static_cast<std::int64_t>(op.rows) * op.columns});
      norm(e, op.layer->group) = direct_square(op);
      if (dx == nullptr) continue;
      std::fill_n(dx, in.size(), 0.0f);
      k_.gather_gemm({.a = dy,
                      .b = w.transposed + op.transposed,
                      .out = dx,
                      .a_row = op.out_pixel.data(),
                      .out_row = op.in_pixel.data(),
                      .out_block = op.input_block.data(),
                      .step = op.input_steps.data(),
                      .bias = nullptr,
                      .rows = pixels,
                      .terms = static_cast<int>(op.input_steps.size()),
                      .columns = static_cast<int>(op.input_block.size()) * 16,
                      .start = GemmStart::out});
    } else if (const auto* f = std::get_if<Activate>(&layer)) {
      if (dx != nullptr)
        k_.activation_backward(
            {.function = *f, .in = in, .out = out, .y = value(op.out, e), .dy = dy, .dx = dx});
    } else if (std::holds_alternative<MaxPool2d>(layer)) {
      if (dx != nullptr) k_.max_pool_backward({.geometry = op.pool, .x = x, .dy = dy, .dx = dx});
    } else if (std::holds_alternative<AvgPool2d>(layer)) {
      if (dx != nullptr)
        k_.average_pool_backward({.geometry = op.pool, .x = x, .dy = dy, .dx = dx});
    } else if (const auto* n = std::get_if<GroupNorm>(&layer)) {
      const float* mean = statistics_.data() + graph_.statistics_size * e + op.statistics;
      k_.group_norm_backward({.in = in,
                              .out = out,
                              .groups = n->groups,
                              .weight = w.packed + op.packed,
                              .x = x,
                              .dy = dy,
                              .mean = mean,
                              .inverse = mean + n->groups,
                              .dx = dx,
                              .dweight = direct,
                              .dbias = direct + op.columns});
      norm(e, op.layer->group) = direct_square(op);
    }
  }
}

float Worker::direct_square(const Op& op) {
  const float* direct = direct_.data() + op.direct;
  if (coordinates_ == nullptr) return k_.square_sum(direct, op.packed_size());
  const Transform& t = coordinates_->transform;
  return k_.transformed_square_sum(direct, {t.mean + op.packed, t.inverse + op.packed},
                                   op.packed_size());
}

void Worker::transformed_dense_squares(const Op& op, int begin, int count) {
  const ImageLayout& in = graph_.edges[to_size(op.in)].layout;
  const std::int64_t inputs = padded(in.size());
  const std::int64_t results = static_cast<std::int64_t>(count) * op.columns;
  if (static_cast<std::int64_t>(inputs_squared_.size()) < inputs * count)
    inputs_squared_ = AlignedVector<float>(to_size(inputs * in_flight_));
  if (static_cast<std::int64_t>(dense_products_.size()) < 2 * results)
    dense_products_ =
        AlignedVector<float>(to_size(2 * static_cast<std::int64_t>(in_flight_) * op.columns));
  std::int32_t squared_row[kMaxChunk];
  std::int32_t in_row[kMaxChunk];
  std::int32_t out_row[kMaxChunk];
  for (int e = 0; e < count; ++e) {
    squared_row[e] = static_cast<std::int32_t>(inputs * e);
    in_row[e] = static_cast<std::int32_t>(graph_.value_size * e);
    out_row[e] = e * op.columns;
    k_.square_numbers(value(op.in, begin + e), inputs_squared_.data() + inputs * e, inputs);
  }
  const auto multiply = [&](const float* x, const std::int32_t* row, const float* factor,
                            float* result) {
    const float* b = factor + op.packed;
    k_.gather_gemm({.a = x,
                    .b = b,
                    .out = result,
                    .a_row = row,
                    .out_row = out_row,
                    .out_block = nullptr,
                    .step = op.forward_steps.data(),
                    .bias = b + static_cast<std::int64_t>(op.rows) * op.columns,
                    .rows = count,
                    .terms = op.rows,
                    .columns = op.columns,
                    .start = GemmStart::bias});
  };
  float* const u = dense_products_.data();
  float* const v = u + results;
  multiply(inputs_squared_.data(), squared_row, coordinates_->square, u);
  multiply(value(op.in, begin), in_row, coordinates_->product, v);
  const double shift = coordinates_->shifts[to_size(&op - graph_.ops.data())];
  for (int e = 0; e < count; ++e) {
    const auto sums = k_.transformed_dense({.dy = result_gradient(op, begin + e),
                                            .u = u + out_row[e],
                                            .v = v + out_row[e],
                                            .n = op.columns});
    norm(begin + e, op.layer->group) =
        dense_square(sums.squares, sums.products, shift, dense_square_error(op.rows, op.columns));
  }
}

void Worker::accumulate(std::size_t first_op, std::size_t last_op, int begin, int count,
                        const float* factors, float* sum) {
  for (std::size_t i = first_op; i < last_op; ++i)
    if (graph_.ops[i].has_parameters())
      accumulate_op(graph_.ops[i], begin, count, factors, sum + graph_.ops[i].packed);
}

void Worker::accumulate_op(const Op& op, int begin, int count, const float* factors, float* sum) {
  const int groups = graph_.network->groups;
  const auto factor = [&](int e) { return factors[e * groups + op.layer->group]; };
  if (!std::holds_alternative<Dense>(op.layer->layer)) {
    for (int e = 0; e < count; ++e)
      if (factor(e) != 0.0f)
        k_.add_scaled({.acc = sum,
                       .g = direct_.data() + op.direct,
                       .factor = factor(e),
                       .n = op.packed_size()});
    return;
  }
  // Examples whose factor is 0 are left out: their numbers may be NaN.
  GemmStep steps[kMaxChunk];
  int terms = 0;
  const float* x = value(op.in, begin);
  float* dy = result_gradient(op, begin);
  for (int e = 0; e < count; ++e) {
    if (factor(e) == 0.0f) continue;
    float* dy_e = result_gradient(op, begin + e);
    for (int o = 0; o < op.columns; ++o) dy_e[o] *= factor(e);
    steps[terms++] = {static_cast<std::int32_t>(value(op.in, begin + e) - x),
                      static_cast<std::int32_t>(dy_e - dy)};
  }
  k_.gather_gemm({.a = x,
                  .b = dy,
                  .out = sum,
                  .a_row = op.input_of_row.data(),
                  .out_row = op.packed_row.data(),
                  .out_block = nullptr,
                  .step = steps,
                  .bias = nullptr,
                  .rows = op.rows,
                  .terms = terms,
                  .columns = op.columns,
                  .start = GemmStart::out});
  for (int t = 0; t < terms; ++t)
    k_.add_scaled({.acc = sum + static_cast<std::int64_t>(op.rows) * op.columns,
                   .g = dy + steps[t].b,
                   .factor = 1.0f,
                   .n = op.columns});
}

}  // namespace cudp::cpu
