#include <algorithm>

#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// 2D convolution. Weights are packed [kernel position, channel in][channel out].
class CpuConv2d final : public WholeGradientLayer {
 public:
  explicit CpuConv2d(const Conv2d& layer) : layer_(layer) {}

  bool runs_per_example() const override { return true; }
  int input_border() const override { return layer_.pad; }
  bool takes_unpadded_input() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.conv_forward({.in = in().layout,
                              .out = out().layout,
                              .kernel = layer_.kernel,
                              .stride = layer_.stride,
                              .product = {.a = w.value(in(), e),
                                          .b = w.weights.packed + weight_.offset,
                                          .out = w.value(out(), e),
                                          .a_row = in_pixel_.data(),
                                          .out_row = out_pixel_.data(),
                                          .out_block = nullptr,
                                          .step = forward_steps_.data(),
                                          .bias = w.weights.packed + weight_.bias(),
                                          .rows = pixels(),
                                          .terms = weight_.rows,
                                          .columns = weight_.columns,
                                          .start = GemmStart::bias}});
  }

  void backward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e) {
      float* const dx = w.gradient(in(), e);
      std::fill_n(dx, in().layout.size(), 0.0f);
      w.kernels.gather_gemm({.a = w.gradient(out(), e),
                             .b = w.weights.transposed + transposed_,
                             .out = dx,
                             .a_row = out_pixel_.data(),
                             .out_row = in_pixel_.data(),
                             .out_block = input_block_.data(),
                             .step = input_steps_.data(),
                             .bias = nullptr,
                             .rows = pixels(),
                             .terms = layer_.out_channels,
                             .columns = static_cast<int>(input_block_.size()) * kColumnBlock,
                             .start = GemmStart::out});
    }
  }

 private:
  void reserve(Storage& s) override {
    const ImageLayout& x = in().layout;
    weight_ = PackedMatrix::reserve(s, taps() * x.channels, out().layout.stride, parameter(1));
    reserve_gradient(s, weight_.offset, weight_.size());
    make_tables();
    if (gives_input_gradient())  // [channel out][kernel position][x.stride]
      transposed_ = Storage::reserve(
          s.transposed, static_cast<std::int64_t>(taps()) * layer_.out_channels * x.stride);
    place_weights(s);
  }

  void make_tables() {
    const ImageLayout& x = in().layout;
    const ImageLayout& y = out().layout;
    for (int ky = 0; ky < layer_.kernel; ++ky)
      for (int kx = 0; kx < layer_.kernel; ++kx) {
        const std::int32_t tap = narrow(ky * x.row() + static_cast<std::int64_t>(kx) * x.stride);
        for (int c = 0; c < x.stride; c += kColumnBlock) input_block_.push_back(tap + c);
        for (int i = 0; i < x.channels; ++i) {
          const auto row = static_cast<std::int32_t>(input_of_row_.size());
          input_of_row_.push_back(tap + i);
          weight_of_row_.push_back(row * weight_.columns);
          forward_steps_.push_back({input_of_row_.back(), weight_of_row_.back()});
        }
      }
    for (int oy = 0; oy < y.height; ++oy)
      for (int ox = 0; ox < y.width; ++ox) {
        // Position of the kernel's first row and column for output pixel (oy, ox). It may lie
        // outside the image, in the border of `pad` zeros.
        in_pixel_.push_back(
            narrow(x.at(oy * layer_.stride - layer_.pad, ox * layer_.stride - layer_.pad)));
        out_pixel_.push_back(narrow(y.at(oy, ox)));
        gradient_steps_.push_back({in_pixel_.back(), out_pixel_.back()});
      }
    for (int o = 0; o < layer_.out_channels; ++o)
      input_steps_.push_back({o, o * taps() * x.stride});
  }

  void place_weights(Storage& s) const {
    const ImageLayout& x = in().layout;
    std::size_t j = parameter(0).offset;  // [channel out][channel in][kernel position]
    for (int o = 0; o < layer_.out_channels; ++o)
      for (int i = 0; i < x.channels; ++i)
        for (int t = 0; t < taps(); ++t, ++j) {
          const std::int64_t row = static_cast<std::int64_t>(t) * x.channels + i;
          s.packed_offset[j] = narrow(weight_.offset + row * weight_.columns + o);
          if (!gives_input_gradient()) continue;
          const std::int64_t position = static_cast<std::int64_t>(o) * taps() + t;
          s.transposed_offset[j] = narrow(transposed_ + position * x.stride + i);
        }
  }

  void make_gradient(Workspace& w, int example, float* g) const override {
    const float* const dy = w.gradient(out(), example);
    w.kernels.conv_weight_gradient({.in = in().layout,
                                    .out = out().layout,
                                    .kernel = layer_.kernel,
                                    .stride = layer_.stride,
                                    .product = {.a = w.value(in(), example),
                                                .b = dy,
                                                .out = g,
                                                .a_row = input_of_row_.data(),
                                                .out_row = weight_of_row_.data(),
                                                .out_block = nullptr,
                                                .step = gradient_steps_.data(),
                                                .bias = nullptr,
                                                .rows = weight_.rows,
                                                .terms = pixels(),
                                                .columns = weight_.columns,
                                                .start = GemmStart::zero}});
    w.kernels.column_sum({.b = dy,
                          .step = gradient_steps_.data(),
                          .terms = pixels(),
                          .columns = weight_.columns,
                          .out = g + (weight_.bias() - weight_.offset)});
  }

  int taps() const { return layer_.kernel * layer_.kernel; }
  int pixels() const { return static_cast<int>(in_pixel_.size()); }

  Conv2d layer_;
  PackedMatrix weight_;
  std::int64_t transposed_ = 0;
  /// Table with one entry per row of the packed weights, i.e. per kernel position and input
  /// channel: offset of the input that this row multiplies, from the first input pixel under the
  /// kernel.
  std::vector<std::int32_t> input_of_row_;
  /// Table with one entry per row of the weights, i.e. per kernel position and input channel:
  /// offset of the row in the packed weights.
  std::vector<std::int32_t> weight_of_row_;
  /// Table with one entry per output pixel: offset in the input of the first pixel under the
  /// kernel.
  std::vector<std::int32_t> in_pixel_;
  std::vector<std::int32_t> out_pixel_;  ///< [output pixel], offset in the output
  /// Table with one entry per kernel position and block of 16 input channels: offset of this block
  /// from the first input pixel under the kernel.
  std::vector<std::int32_t> input_block_;
  /// Table for the matrix product that computes outputs: offsets of the two factors of each summand
  /// of an output. There is one summand per row of the weights.
  std::vector<GemmStep> forward_steps_;
  /// Table for the matrix product that computes weight gradients: offsets of the two factors of
  /// each summand of a weight's gradient. There is one summand per output pixel.
  std::vector<GemmStep> gradient_steps_;
  /// Table for the matrix product that computes input gradients: offsets of the two factors of each
  /// summand of an input's gradient. There is one summand per output channel.
  std::vector<GemmStep> input_steps_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const Conv2d& layer) {
  return std::make_unique<CpuConv2d>(layer);
}

}  // namespace cudp::cpu
