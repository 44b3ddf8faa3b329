#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Dense layer, applied to every word of a text. Weights are packed [input][output].
class CpuTokenDense final : public WholeGradientLayer {
 public:
  explicit CpuTokenDense(const Dense& layer) : outputs_(layer.out) {}

  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.gather_gemm({.a = w.value(in(), e),
                             .b = w.weights.packed + weight_.offset,
                             .out = w.value(out(), e),
                             .a_row = in_word_.data(),
                             .out_row = out_word_.data(),
                             .out_block = nullptr,
                             .step = forward_steps_.data(),
                             .bias = w.weights.packed + weight_.bias(),
                             .rows = w.length(e),
                             .terms = weight_.rows,
                             .columns = weight_.columns,
                             .start = GemmStart::bias});
  }

  void backward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.gather_gemm({.a = w.gradient(out(), e),
                             .b = w.weights.transposed + transposed_,
                             .out = w.gradient(in(), e),
                             .a_row = out_word_.data(),
                             .out_row = in_word_.data(),
                             .out_block = nullptr,
                             .step = input_steps_.data(),
                             .bias = nullptr,
                             .rows = w.length(e),
                             .terms = outputs_,
                             .columns = in().layout.stride,
                             .start = GemmStart::zero});
  }

 private:
  void reserve(Storage& s) override {
    const ImageLayout& x = in().layout;
    weight_ = PackedMatrix::reserve(s, x.channels, out().layout.stride, parameter(1));
    reserve_gradient(s, weight_.offset, weight_.size());
    if (gives_input_gradient())  // [output][x.stride]
      transposed_ = Storage::reserve(s.transposed, std::int64_t{outputs_} * x.stride);
    std::size_t j = parameter(0).offset;  // [output][input]
    for (int o = 0; o < outputs_; ++o)
      for (int i = 0; i < x.channels; ++i, ++j) {
        s.packed_offset[j] = narrow(weight_.offset + std::int64_t{i} * weight_.columns + o);
        if (gives_input_gradient())
          s.transposed_offset[j] = narrow(transposed_ + std::int64_t{o} * x.stride + i);
      }
    make_tables();
  }

  void make_tables() {
    for (int i = 0; i < weight_.rows; ++i) {
      input_.push_back(i);
      weight_row_.push_back(i * weight_.columns);
      forward_steps_.push_back({i, i * weight_.columns});
    }
    for (int o = 0; o < outputs_; ++o) input_steps_.push_back({o, o * in().layout.stride});
    for (int t = 0; t < in().layout.width; ++t) {
      in_word_.push_back(narrow(in().layout.at(0, t)));
      out_word_.push_back(narrow(out().layout.at(0, t)));
      gradient_steps_.push_back({in_word_.back(), out_word_.back()});
    }
  }

  void make_gradient(Workspace& w, int example, float* g) const override {
    const float* const dy = w.gradient(out(), example);
    const int length = w.length(example);
    w.kernels.gather_gemm({.a = w.value(in(), example),
                           .b = dy,
                           .out = g,
                           .a_row = input_.data(),
                           .out_row = weight_row_.data(),
                           .out_block = nullptr,
                           .step = gradient_steps_.data(),
                           .bias = nullptr,
                           .rows = weight_.rows,
                           .terms = length,
                           .columns = weight_.columns,
                           .start = GemmStart::zero});
    w.kernels.column_sum({.b = dy,
                          .step = gradient_steps_.data(),
                          .terms = length,
                          .columns = weight_.columns,
                          .out = g + (weight_.bias() - weight_.offset)});
  }

  int outputs_;
  PackedMatrix weight_;
  std::int64_t transposed_ = 0;
  std::vector<std::int32_t> input_;       ///< [input], offset of the input in a word's numbers
  std::vector<std::int32_t> weight_row_;  ///< [input], offset of the input's weights
  std::vector<std::int32_t> in_word_;     ///< [word], offset of the word's inputs
  std::vector<std::int32_t> out_word_;    ///< [word], offset of the word's outputs
  std::vector<GemmStep> forward_steps_;   ///< offsets of each summand, one per input, of an output
  /// Table for the matrix product that computes weight gradients: offsets of the two factors of
  /// each summand of a weight's gradient. There is one summand per word of the text.
  std::vector<GemmStep> gradient_steps_;
  /// Table for the matrix product that computes input gradients: offsets of the two factors of each
  /// summand of an input's gradient. There is one summand per output.
  std::vector<GemmStep> input_steps_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_token_dense(const Dense& layer) {
  return std::make_unique<CpuTokenDense>(layer);
}

}  // namespace cudp::cpu
