#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "kernels/common/fixed_point.hpp"
#include "kernels/contribution/clip_math.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

const std::uint8_t* row_of(const CodedRows& rows, std::uint32_t example) {
  return rows.rows + rows.row_bytes * example;
}
/// Returns number k of a table row in compact form (CodedRows). After the row's numbers the record
/// has the squared norm |x|^2 of the row, which is returned if k is the count of numbers.
float number_of(const std::uint8_t* row, int k) {
  float x = 0.0f;
  std::memcpy(&x, row + 4 * static_cast<std::ptrdiff_t>(k), sizeof x);
  return x;
}

/// Dense layer on the CPU. Weights are packed [input][output]. With x the layer's input and dy the
/// gradient of its output, an example's weight gradient is the outer product x dy'. It is never
/// stored: its norm is |x| |dy|, and the sum over examples is one product of the inputs [examples,
/// inputs] and the weighted dy [examples, outputs]. With coordinate-wise clipping, each coordinate
/// has another weight; the norms then need two more products, and the sum is computed one example
/// after the other.
///
/// As the first layer it can read a table's rows in compact form (CodedRows). For a one-hot feature
/// that is 1, the product with the weights is a row of weights, and the gradient of that row is dy.
/// |x|^2 is stored with the row. An example adds the same integers to the sum as in dense form,
/// because the zeros of the dense row add nothing.
class CpuDense final : public CpuLayer {
 public:
  explicit CpuDense(const Dense& layer) : outputs_(layer.out) {}

  bool takes_unpadded_input() const override { return true; }
  bool takes_codes() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    if (reads_codes(w)) {
      w.kernels.coded_product({.rows = w.data->coded_rows(),
                               .examples = w.examples.data() + first,
                               .weights = w.weights.packed + weight_.offset,
                               .bias = w.weights.packed + weight_.bias(),
                               .out = result(w, first),
                               .out_stride = w.value_stride(),
                               .count = count,
                               .columns = weight_.columns,
                               .has_one_output = outputs_ == 1});
      return;
    }
    std::int32_t row[kMaxChunk];
    for (int e = 0; e < count; ++e) row[e] = static_cast<std::int32_t>(e * w.value_stride());
    w.kernels.gather_gemm({.a = w.value(in(), first),
                           .b = w.weights.packed + weight_.offset,
                           .out = result(w, first),
                           .a_row = row,
                           .out_row = row,
                           .out_block = nullptr,
                           .step = forward_steps_.data(),
                           .bias = w.weights.packed + weight_.bias(),
                           .rows = count,
                           .terms = weight_.rows,
                           .columns = weight_.columns,
                           .start = GemmStart::bias});
  }

  void gradient(Workspace& w, int first, int count) const override {
    if (w.coordinates != nullptr) {
      transformed_squares(w, first, count);
      return;
    }
    for (int e = first; e < first + count; ++e) {
      // |x dy'|^2 = |x|^2 |dy|^2 for the weights, plus |dy|^2 for the bias.
      const float x2 =
          reads_codes(w) ? coded_square(w, e) : w.kernels.square_sum(w.value(in(), e), in().size());
      const float dy2 = w.kernels.square_sum(result_gradient(w, e), weight_.columns);
      w.norm(e, group()) = dense_squared_norm(x2, dy2, outputs_);
      *w.saved(square_, e) = x2;
    }
  }

  void backward(Workspace& w, int first, int count) const override {
    std::int32_t in_row[kMaxChunk];
    std::int32_t out_row[kMaxChunk];
    float* const dx = w.gradient(in(), first);
    const float* const dy = result_gradient(w, first);
    for (int e = 0; e < count; ++e) {
      in_row[e] = static_cast<std::int32_t>(w.gradient(in(), first + e) - dx);
      out_row[e] = static_cast<std::int32_t>(result_gradient(w, first + e) - dy);
    }
    w.kernels.gather_gemm({.a = dy,
                           .b = w.weights.transposed + transposed_,
                           .out = dx,
                           .a_row = out_row,
                           .out_row = in_row,
                           .out_block = nullptr,
                           .step = input_steps_.data(),
                           .bias = nullptr,
                           .rows = count,
                           .terms = outputs_,
                           .columns = static_cast<int>(in().layout.size()),
                           .start = GemmStart::zero});
  }

  void add(Workspace& w, int first, int count, const GradientSum& sum) const override {
    // Without coordinate-wise clipping, dy is multiplied by the example's clip factor here. With
    // it, dy stays as it is: add_outer() computes (gradient - m) / scale first and then multiplies
    // by the clip factor (scales).
    const bool weigh = w.coordinates == nullptr;
    const float units = sum.plain != nullptr ? 1.0f : sum.inverse_grid;
    GemmStep steps[kMaxChunk];
    float scales[kMaxChunk];
    std::uint32_t examples[kMaxChunk];
    int terms = 0;
    const float* const x = w.value(in(), first);
    const float* const dy = result_gradient(w, first);
    for (int e = first; e < first + count; ++e) {
      const float factor = w.factor(e, group());
      if (factor == 0.0f) continue;
      float* const dy_e = result_gradient(w, e);
      scales[terms] = factor * units;
      if (weigh) this->weigh(w, e, scales[terms], sum.plain == nullptr);
      examples[terms] = w.examples[to_size(e)];
      steps[terms++] = {static_cast<std::int32_t>(w.value(in(), e) - x),
                        static_cast<std::int32_t>(dy_e - dy)};
    }
    if (reads_codes(w)) {
      add_coded(w, {examples, examples + terms}, dy, {steps, steps + terms}, sum);
      return;
    }
    // sum.plain is set only by Worker::gradient(), for the gradient of a single example. The
    // numbers are then added as floats.
    if (sum.plain != nullptr) {
      add_plain(w, x, dy, {steps, steps + terms}, sum.plain);
      return;
    }
    const AddOuter weights{.x = x,
                           .y = dy,
                           .units = sum.units + weight_.offset,
                           .x_row = input_of_row_.data(),
                           .step = steps,
                           .rows = weight_.rows,
                           .terms = terms,
                           .columns = weight_.columns,
                           .outputs = outputs_,
                           .transform = w.transform(weight_.offset),
                           .scale = scales};
    w.kernels.add_outer(weights);
    // The bias is the weight of an input that is 1.
    constexpr float kOne = 1.0f;
    constexpr std::int32_t kNoOffset = 0;
    for (int t = 0; t < terms; ++t) steps[t].a = 0;
    AddOuter bias = weights;
    bias.x = &kOne;
    bias.x_row = &kNoOffset;
    bias.rows = 1;
    bias.units = sum.units + weight_.bias();
    bias.transform = w.transform(weight_.bias());
    w.kernels.add_outer(bias);
  }

  /// Returns the sum of (m / scale)^2 over this layer's weights. With coordinate-wise clipping it
  /// is the part of a gradient's squared norm that is the same for all examples. c: the arrays of
  /// coordinate-wise clipping.
  double coordinate_shift(const Coordinates& c) const override {
    double shift = 0.0;
    for (std::int64_t at = weight_.offset; at < weight_.offset + weight_.size(); ++at) {
      const double m = c.transform.mean[at];
      shift += m * m * static_cast<double>(c.square[at]);
    }
    return shift;
  }

 private:
  /// Multiplies dy of example e, the gradient of the layer's output, by `scale`. in_units: whether
  /// gradients are summed as integer multiples of a grid. If so, every product of x and dy must
  /// stay below 2^22 grid steps (kMaxUnits). It does if the norm by which the gradient was clipped
  /// is correct. dy is clamped, so that the bound holds even if the norm is wrong. w: the thread's
  /// workspace.
  void weigh(Workspace& w, int e, float scale, bool in_units) const {
    float* const dy = result_gradient(w, e);
    constexpr auto kMaxDerivative = static_cast<float>(0.75 * kMaxUnits);
    const float bound =
        in_units ? kMaxDerivative / std::sqrt(*w.saved(square_, e) + 1.0f) : INFINITY;
    for (int o = 0; o < weight_.columns; ++o) dy[o] = std::clamp(dy[o] * scale, -bound, bound);
  }

  void reserve(Storage& s) override {
    const ImageLayout& x = in().layout;
    weight_ = PackedMatrix::reserve(s, x.channels * x.height * x.width, out().layout.stride,
                                    parameter(1));
    // |x|^2 is one number, but a whole block of kColumnBlock floats is reserved for it, to keep the
    // numbers after it aligned.
    square_ = Storage::reserve(s.saved, kColumnBlock);
    if (gives_input_gradient())  // [output][input's layout]
      transposed_ = Storage::reserve(s.transposed, outputs_ * x.size());
    for (int y = 0; y < x.height; ++y)
      for (int px = 0; px < x.width; ++px)
        for (int c = 0; c < x.channels; ++c) {
          const std::int64_t pixel = (static_cast<std::int64_t>(c) * x.height + y) * x.width + px;
          place_input(s, x.at(y, px) + c, pixel);
        }
    for (int o = 0; o < outputs_; ++o) input_steps_.push_back({o, narrow(o * x.size())});
  }

  /// Adds the row of weights of the next input to the tables that the matrix products read
  /// (input_of_row_, weight_of_row_, forward_steps_). Records in `s` the offset of each of these
  /// weights. at: offset of the input in the activations. pixel: index of the input in PyTorch's
  /// order.
  void place_input(Storage& s, std::int64_t at, std::int64_t pixel) {
    const auto row = static_cast<std::int64_t>(input_of_row_.size());
    input_of_row_.push_back(narrow(at));
    weight_of_row_.push_back(narrow(row * weight_.columns));
    forward_steps_.push_back({input_of_row_.back(), weight_of_row_.back()});
    for (int o = 0; o < outputs_; ++o) {
      const auto j = parameter(0).offset +  // [output][input]
                     static_cast<std::size_t>(static_cast<std::int64_t>(o) * weight_.rows + pixel);
      s.packed_offset[j] = narrow(weight_.offset + row * weight_.columns + o);
      if (gives_input_gradient())
        s.transposed_offset[j] = narrow(transposed_ + o * in().layout.size() + at);
    }
  }

  /// Coordinate-wise clipping: computes the squared norm of the transformed gradient, |(x dy' - m)
  /// / scale|^2, for the examples first .. first + count - 1 of the workspace. It follows from dy
  /// and two matrix products: x^2 with 1 / scale^2, and x with m / scale^2. dense_square() has the
  /// formula. w: the thread's workspace.
  void transformed_squares(Workspace& w, int first, int count) const {
    const Coordinates& c = *w.coordinates;
    const std::int64_t inputs = in().size();
    float* const squared_inputs = w.scratch((inputs + std::int64_t{2} * weight_.columns) * count);
    float* const u = squared_inputs + inputs * count;
    float* const v = u + static_cast<std::int64_t>(weight_.columns) * count;
    std::int32_t squared_row[kMaxChunk];
    std::int32_t in_row[kMaxChunk];
    std::int32_t out_row[kMaxChunk];
    for (int e = 0; e < count; ++e) {
      squared_row[e] = static_cast<std::int32_t>(inputs * e);
      in_row[e] = static_cast<std::int32_t>(w.value_stride() * e);
      out_row[e] = e * weight_.columns;
      w.kernels.square_numbers(w.value(in(), first + e), squared_inputs + inputs * e, inputs);
    }
    const auto multiply = [&](const float* x, const std::int32_t* row, const float* packed,
                              float* result) {
      w.kernels.gather_gemm({.a = x,
                             .b = packed + weight_.offset,
                             .out = result,
                             .a_row = row,
                             .out_row = out_row,
                             .out_block = nullptr,
                             .step = forward_steps_.data(),
                             .bias = packed + weight_.bias(),
                             .rows = count,
                             .terms = weight_.rows,
                             .columns = weight_.columns,
                             .start = GemmStart::bias});
    };
    multiply(squared_inputs, squared_row, c.square, u);
    multiply(w.value(in(), first), in_row, c.product, v);
    const double shift = c.shifts[to_size(group())];
    const double error = dense_square_error(weight_.rows, weight_.columns);
    for (int e = 0; e < count; ++e) {
      const auto sums = w.kernels.transformed_dense({.dy = result_gradient(w, first + e),
                                                     .u = u + out_row[e],
                                                     .v = v + out_row[e],
                                                     .n = weight_.columns});
      w.norm(first + e, group()) = dense_square(sums.squares, sums.products, shift, error);
    }
  }

  /// Returns whether the layer reads the data set's rows in compact form (CodedRows) instead of a
  /// dense input. A row then stores, for each categorical column, the index of its one input that
  /// is 1 (its code), which is also the index of that input's weights. w: the thread's workspace.
  bool reads_codes(const Workspace& w) const { return passes_codes() && w.reads_codes(); }

  /// Returns |x|^2 of example e of the workspace, which is stored in its table row. w: the thread's
  /// workspace.
  static float coded_square(const Workspace& w, int e) {
    const CodedRows rows = w.data->coded_rows();
    return number_of(row_of(rows, w.examples[to_size(e)]), rows.numbers);
  }

  /// Adds the clipped gradients of `examples`, indices in the data set, whose rows are read in
  /// compact form (CodedRows). dy: gradients of the outputs, weighted. steps: for each example the
  /// offset of its dy (member b). w: the thread's workspace. sum: array to which gradients are
  /// added.
  void add_coded(Workspace& w, std::span<const std::uint32_t> examples, const float* dy,
                 std::span<const GemmStep> steps, const GradientSum& sum) const {
    const CodedRows rows = w.data->coded_rows();
    std::int32_t y_row[kMaxChunk];
    for (std::size_t t = 0; t < steps.size(); ++t) y_row[t] = steps[t].b;
    if (sum.plain == nullptr) {
      w.kernels.add_coded_outer({.rows = rows,
                                 .examples = examples.data(),
                                 .y = dy,
                                 .y_row = y_row,
                                 .units = sum.units + weight_.offset,
                                 .bias_units = sum.units + weight_.bias(),
                                 .terms = static_cast<int>(steps.size()),
                                 .columns = weight_.columns});
      return;
    }
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const auto add = [&](std::int64_t at, float x) {
        w.kernels.add_scaled(
            {.acc = sum.plain + at, .g = dy + y_row[t], .factor = x, .n = weight_.columns});
      };
      const std::uint8_t* const row = row_of(rows, examples[t]);
      for (int k = 0; k < rows.numbers; ++k)
        add(weight_.offset + std::int64_t{rows.number_feature[k]} * weight_.columns,
            number_of(row, k));
      for (int k = 0; k < rows.codes; ++k)
        if (const auto code = static_cast<std::int64_t>(code_of(rows, row, k));
            code < rows.features)
          add(weight_.offset + code * weight_.columns, 1.0f);
      add(weight_.bias(), 1.0f);
    }
  }

  /// Adds the weighted gradients x dy' of the examples as floats to `sum`, in one matrix product.
  /// steps: the offsets of each example's x (member a) and dy (member b). w: the thread's
  /// workspace. x: the layer's inputs.
  void add_plain(Workspace& w, const float* x, const float* dy, std::span<const GemmStep> steps,
                 float* sum) const {
    w.kernels.gather_gemm({.a = x,
                           .b = dy,
                           .out = sum + weight_.offset,
                           .a_row = input_of_row_.data(),
                           .out_row = weight_of_row_.data(),
                           .out_block = nullptr,
                           .step = steps.data(),
                           .bias = nullptr,
                           .rows = weight_.rows,
                           .terms = static_cast<int>(steps.size()),
                           .columns = weight_.columns,
                           .start = GemmStart::out});
    for (const GemmStep& step : steps)
      w.kernels.add_scaled(
          {.acc = sum + weight_.bias(), .g = dy + step.b, .factor = 1.0f, .n = weight_.columns});
  }

  /// Returns the address, in the workspace w, of the first output of an example. Outputs and their
  /// gradients lie inside a border if the next layer is a padded convolution.
  float* result(Workspace& w, int example) const {
    return w.value(out(), example) + out().layout.at(0, 0);
  }
  float* result_gradient(Workspace& w, int example) const {
    return w.gradient(out(), example) + out().layout.at(0, 0);
  }

  int outputs_;
  PackedMatrix weight_;
  std::int64_t transposed_ = 0;
  std::int64_t square_ = 0;  ///< offset of |x|^2 in Workspace::saved
  /// Table with one entry per row of the weights (one row per input): offset of the input in the
  /// activations.
  std::vector<std::int32_t> input_of_row_;
  /// Table with one entry per row of the weights (one row per input): offset of the row in the
  /// packed weights.
  std::vector<std::int32_t> weight_of_row_;
  /// Table for the matrix product that computes outputs: offsets of the two factors of each summand
  /// of an output. There is one summand per row of the weights.
  std::vector<GemmStep> forward_steps_;
  /// Table for the matrix product that computes input gradients: offsets of the two factors of each
  /// summand of an input's gradient. There is one summand per output.
  std::vector<GemmStep> input_steps_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const Dense& layer) {
  if (layer.per_token) return make_token_dense(layer);
  return std::make_unique<CpuDense>(layer);
}

}  // namespace cudp::cpu
