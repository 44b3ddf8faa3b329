// The CPU's kernels of single layers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/cpu_kernel_fixture.hpp"

namespace cudp {
namespace {

using CpuLayerKernel = CpuKernel;

// --- Convolutions ---

struct ConvCase {
  int kernel, stride, pad, channels, outputs, height, width;
};

/// A convolution as the layer lays it out: which terms its products have.
struct ConvTables {
  ConvTables(const ConvCase& c, int input_stride)
      : in{.channels = c.channels,
           .height = c.height,
           .width = c.width,
           .stride = input_stride,
           .border = c.pad},
        out(layout_of(c.outputs, (c.height + 2 * c.pad - c.kernel) / c.stride + 1,
                      (c.width + 2 * c.pad - c.kernel) / c.stride + 1, 1)) {
    for (int y = 0; y < out.height; ++y)
      for (int x = 0; x < out.width; ++x) {
        pixel_in.push_back(offset(in, y * c.stride - c.pad, x * c.stride - c.pad));
        pixel_out.push_back(offset(out, y, x));
        pixels.push_back({pixel_in.back(), pixel_out.back()});
      }
    for (int ky = 0; ky < c.kernel; ++ky)
      for (int kx = 0; kx < c.kernel; ++kx)
        for (int channel = 0; channel < c.channels; ++channel) {
          const auto tap = static_cast<std::int32_t>(taps.size());
          tap_in.push_back(
              static_cast<std::int32_t>(ky * in.row() + std::int64_t{kx} * in.stride + channel));
          tap_out.push_back(tap * out.stride);
          taps.push_back({tap_in.back(), tap * out.stride});
        }
  }
  static std::int32_t offset(const ImageLayout& l, int y, int x) {
    return static_cast<std::int32_t>(l.at(y, x));
  }
  /// Calls f(tap, y, x, channel in, and the input's offset) for what output (oy, ox) sums.
  template <class F>
  void for_each_tap(const ConvCase& c, int oy, int ox, F f) const {
    int tap = 0;
    for (int ky = 0; ky < c.kernel; ++ky)
      for (int kx = 0; kx < c.kernel; ++kx)
        for (int channel = 0; channel < c.channels; ++channel)
          f(tap++, in.at(oy * c.stride - c.pad + ky, ox * c.stride - c.pad + kx) + channel);
  }

  ImageLayout in, out;
  std::vector<std::int32_t> pixel_in, pixel_out, tap_in, tap_out;
  std::vector<GemmStep> pixels, taps;
};

/// Those with a way of their own for one input channel among them, with tails on each side of the
/// 14 and 7 pixels that it takes at once.
const std::vector<ConvCase> kConvolutions = {
    {1, 1, 0, 1, 1, 1, 1},    {3, 1, 1, 1, 16, 5, 14}, {3, 1, 0, 1, 13, 4, 17},
    {5, 1, 2, 1, 16, 6, 15},  {5, 1, 0, 1, 16, 5, 5},  {8, 2, 3, 1, 16, 28, 28},
    {8, 2, 0, 1, 9, 9, 39},   {3, 1, 1, 3, 20, 5, 4},  {3, 2, 1, 2, 7, 6, 5},
    {4, 3, 0, 16, 32, 10, 7}, {1, 1, 0, 17, 48, 3, 3}};

TEST_P(CpuLayerKernel, ConvolutionsForward) {
  for (const ConvCase& c : kConvolutions) {
    const ConvTables t(c, c.channels == 1 ? 1 : (c.channels + 15) / 16 * 16);
    Image x(t.in, normals(numbers_in(t.in)), 0.0f);
    Image y(t.out, std::vector<float>(static_cast<std::size_t>(numbers_in(t.out)), kLoud));
    std::vector<float> weight(t.taps.size() * static_cast<std::size_t>(t.out.stride));
    std::vector<float> bias(static_cast<std::size_t>(t.out.stride));
    for (std::size_t i = 0; i < weight.size(); ++i)
      if (static_cast<int>(i) % t.out.stride < c.outputs) weight[i] = normals(1)[0];
    for (int k = 0; k < c.outputs; ++k) bias[static_cast<std::size_t>(k)] = normals(1)[0];
    kernels().conv_forward({.in = t.in,
                            .out = t.out,
                            .kernel = c.kernel,
                            .stride = c.stride,
                            .product = {.a = x.values.data(),
                                        .b = weight.data(),
                                        .out = y.values.data(),
                                        .a_row = t.pixel_in.data(),
                                        .out_row = t.pixel_out.data(),
                                        .out_block = nullptr,
                                        .step = t.taps.data(),
                                        .bias = bias.data(),
                                        .rows = static_cast<int>(t.pixel_in.size()),
                                        .terms = static_cast<int>(t.taps.size()),
                                        .columns = t.out.stride,
                                        .start = GemmStart::bias}});
    for (int oy = 0; oy < t.out.height; ++oy)
      for (int ox = 0; ox < t.out.width; ++ox)
        for (int k = 0; k < c.outputs; ++k) {
          double want = static_cast<double>(bias[static_cast<std::size_t>(k)]);
          double size = std::abs(want);
          t.for_each_tap(c, oy, ox, [&](int tap, std::int64_t at) {
            const double term = static_cast<double>(x.values[at]) *
                                static_cast<double>(weight[tap * t.out.stride + k]);
            want += term;
            size += std::abs(term);
          });
          expect_near(static_cast<double>(y.at(oy, ox, k)), want, size,
                      "kernel " + std::to_string(c.kernel) + ", output " + std::to_string(k));
        }
    y.expect_clean();
  }
}

TEST_P(CpuLayerKernel, ConvolutionsWeightGradients) {
  for (const ConvCase& c : kConvolutions) {
    const ConvTables t(c, c.channels == 1 ? 1 : (c.channels + 15) / 16 * 16);
    Image x(t.in, normals(numbers_in(t.in)), 0.0f);
    Image dy(t.out, normals(numbers_in(t.out)));
    Guarded<float> dweight(static_cast<std::int64_t>(t.taps.size()) * t.out.stride, kLoud);
    kernels().conv_weight_gradient({.in = t.in,
                                    .out = t.out,
                                    .kernel = c.kernel,
                                    .stride = c.stride,
                                    .product = {.a = x.values.data(),
                                                .b = dy.values.data(),
                                                .out = dweight.data(),
                                                .a_row = t.tap_in.data(),
                                                .out_row = t.tap_out.data(),
                                                .out_block = nullptr,
                                                .step = t.pixels.data(),
                                                .bias = nullptr,
                                                .rows = static_cast<int>(t.tap_in.size()),
                                                .terms = static_cast<int>(t.pixels.size()),
                                                .columns = t.out.stride,
                                                .start = GemmStart::zero}});
    std::vector<double> want(static_cast<std::size_t>(dweight.size())), size(want.size());
    for (int oy = 0; oy < t.out.height; ++oy)
      for (int ox = 0; ox < t.out.width; ++ox)
        t.for_each_tap(c, oy, ox, [&](int tap, std::int64_t at) {
          for (int k = 0; k < c.outputs; ++k) {
            const double term =
                static_cast<double>(x.values[at]) * static_cast<double>(dy.at(oy, ox, k));
            want[tap * t.out.stride + k] += term;
            size[tap * t.out.stride + k] += std::abs(term);
          }
        });
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_near(static_cast<double>(dweight[static_cast<std::int64_t>(i)]), want[i], size[i],
                  "kernel " + std::to_string(c.kernel) + ", number " + std::to_string(i));
  }
}

// --- Images ---

TEST_P(CpuLayerKernel, LoadImageWritesPixelsAlone) {
  for (ImageLayout layout :
       {ImageLayout{1, 1, 1, 16, 0}, ImageLayout{37, 1, 1, 48, 0}, ImageLayout{1, 5, 3, 1, 2},
        ImageLayout{3, 4, 5, 16, 1}, ImageLayout{2, 1, 6, 2, 0}}) {
    const auto n = static_cast<std::size_t>(numbers_in(layout));
    std::vector<std::uint8_t> bytes(n);
    std::vector<float> floats(n);
    for (std::size_t i = 0; i < n; ++i) {
      bytes[i] = static_cast<std::uint8_t>(17 * i + 250);
      floats[i] = 0.5f * static_cast<float>(bytes[i]) - 3.0f;
    }
    for (const bool as_bytes : {true, false}) {
      Guarded<float> out(layout.size(), kLoud);
      std::vector<float> want(static_cast<std::size_t>(layout.size()), kLoud);
      for (int c = 0; c < layout.channels; ++c)
        for (int y = 0; y < layout.height; ++y)
          for (int x = 0; x < layout.width; ++x)
            want[static_cast<std::size_t>(layout.at(y, x) + c)] =
                floats[(c * layout.height + y) * layout.width + x];
      kernels().load_image({.bytes = as_bytes ? bytes.data() : nullptr,
                            .floats = as_bytes ? nullptr : floats.data(),
                            .scale = 0.5f,
                            .shift = -3.0f,
                            .out = out.data(),
                            .layout = layout});
      EXPECT_EQ(out.values(), want);
    }
  }
}

// --- Activations ---

double value_of(const Activate& f, double x) {
  if (f.kind == Activation::relu) return std::max(x, 0.0);
  if (f.kind == Activation::tanh) return std::tanh(x);
  return static_cast<double>(f.scale) / (1.0 + std::exp(-static_cast<double>(f.temperature) * x)) -
         static_cast<double>(f.offset);
}

TEST_P(CpuLayerKernel, ActivationsKeepBordersAndPadding) {
  for (const Activation kind : {Activation::relu, Activation::tanh, Activation::tempered_sigmoid})
    for (const auto& [in, out] : {std::pair{layout_of(1, 1, 1, 0), layout_of(1, 1, 1, 0)},
                                  std::pair{layout_of(16, 3, 2, 0), layout_of(16, 3, 2, 2)},
                                  std::pair{layout_of(19, 2, 5, 1), layout_of(19, 2, 5, 0)}}) {
      const Activate f{kind, 1.5f, 2.5f, 0.7f};
      Image x(in, normals(numbers_in(in)));
      x.at(0, 0, 0) = 30.0f;  // where exp leaves the floats
      Image y(out, normals(numbers_in(out)));
      kernels().activation_forward(
          {.function = f, .in = in, .out = out, .x = x.values.data(), .y = y.values.data()});
      y.expect_clean();
      Image dy(out, normals(numbers_in(out)));
      Image dx(in, normals(numbers_in(in)));
      kernels().activation_backward({.function = f,
                                     .in = in,
                                     .out = out,
                                     .y = y.values.data(),
                                     .dy = dy.values.data(),
                                     .dx = dx.values.data()});
      dx.expect_clean();
      for (int row = 0; row < in.height; ++row)
        for (int column = 0; column < in.width; ++column)
          for (int c = 0; c < in.channels; ++c) {
            const double at = static_cast<double>(x.at(row, column, c));
            const double slope = (value_of(f, at + 1e-6) - value_of(f, at - 1e-6)) / 2e-6;
            const double g = static_cast<double>(dy.at(row, column, c));
            expect_near(static_cast<double>(y.at(row, column, c)), value_of(f, at), 2.0,
                        "value of " + std::to_string(at));
            expect_near(static_cast<double>(dx.at(row, column, c)), g * slope,
                        4.0 * std::abs(g) + 1e-3, "gradient at " + std::to_string(at));
          }
    }
}

// --- Pools ---

struct PoolCase {
  int kernel, stride, channels, height, width;
};
const std::vector<PoolCase> kPools = {{1, 1, 1, 1, 1},  {2, 1, 16, 5, 6}, {2, 1, 3, 2, 2},
                                      {2, 2, 17, 6, 4}, {2, 2, 5, 5, 7},  {3, 2, 16, 7, 5},
                                      {3, 1, 33, 4, 5}, {2, 3, 2, 7, 8},  {1, 3, 4, 5, 4}};

/// Calls f(oy, ox, c, the pixels of the window in row order).
template <class F>
void for_each_window(const PoolCase& c, const ImageLayout& out, F f) {
  for (int oy = 0; oy < out.height; ++oy)
    for (int ox = 0; ox < out.width; ++ox)
      for (int channel = 0; channel < c.channels; ++channel) {
        std::vector<std::pair<int, int>> window;
        for (int ky = 0; ky < c.kernel; ++ky)
          for (int kx = 0; kx < c.kernel; ++kx)
            window.emplace_back(oy * c.stride + ky, ox * c.stride + kx);
        f(oy, ox, channel, window);
      }
}

TEST_P(CpuLayerKernel, PoolsTakeWindowsWithTiesAndTails) {
  for (const PoolCase& c : kPools)
    for (const bool is_max : {true, false}) {
      const ImageLayout in = layout_of(c.channels, c.height, c.width, 1);
      const ImageLayout out = layout_of(c.channels, (c.height - c.kernel) / c.stride + 1,
                                        (c.width - c.kernel) / c.stride + 1, 2);
      std::vector<float> pixels = normals(numbers_in(in));
      for (float& v : pixels) v = std::round(2.0f * v);  // ties
      Image x(in, pixels);
      Image y(out, normals(numbers_in(out)));
      Image dy(out, normals(numbers_in(out)));
      Image dx(in, std::vector<float>(pixels.size(), kLoud));
      const PoolGeometry geometry{.in = in, .out = out, .kernel = c.kernel, .stride = c.stride};
      const PoolForward forward{.geometry = geometry, .x = x.values.data(), .y = y.values.data()};
      const PoolBackward backward{.geometry = geometry,
                                  .x = is_max ? x.values.data() : nullptr,
                                  .dy = dy.values.data(),
                                  .dx = dx.values.data()};
      if (is_max) {
        kernels().max_pool_forward(forward);
        kernels().max_pool_backward(backward);
      } else {
        kernels().average_pool_forward(forward);
        kernels().average_pool_backward(backward);
      }
      y.expect_clean();
      std::vector<double> want(static_cast<std::size_t>(in.size()));
      for_each_window(c, out, [&](int oy, int ox, int channel, const auto& window) {
        const double g = static_cast<double>(dy.at(oy, ox, channel));
        double value = 0.0;
        if (is_max) {
          const auto largest =
              std::max_element(window.begin(), window.end(), [&](const auto& a, const auto& b) {
                return x.at(a.first, a.second, channel) < x.at(b.first, b.second, channel);
              });
          value = static_cast<double>(x.at(largest->first, largest->second, channel));
          want[static_cast<std::size_t>(in.at(largest->first, largest->second) + channel)] += g;
        } else {
          const auto count = static_cast<double>(window.size());
          for (const auto& [row, column] : window) {
            value += static_cast<double>(x.at(row, column, channel)) / count;
            want[static_cast<std::size_t>(in.at(row, column) + channel)] += g / count;
          }
        }
        expect_near(static_cast<double>(y.at(oy, ox, channel)), value, 10.0, "pool");
      });
      for (int row = 0; row < in.height; ++row)
        for (int column = 0; column < in.width; ++column)
          for (int channel = 0; channel < in.stride; ++channel)
            expect_near(static_cast<double>(dx.at(row, column, channel)),
                        want[static_cast<std::size_t>(in.at(row, column) + channel)], 10.0,
                        "gradient of a pool, kernel " + std::to_string(c.kernel));
    }
}

// --- Group norm ---

struct NormCase {
  int channels, groups, height, width;
};

TEST_P(CpuLayerKernel, GroupNormAndItsGradients) {
  for (const NormCase c : {NormCase{1, 1, 1, 2}, NormCase{6, 2, 3, 2}, NormCase{5, 5, 2, 4},
                           NormCase{32, 4, 2, 2}, NormCase{18, 1, 1, 3}}) {
    const ImageLayout in = layout_of(c.channels, c.height, c.width, 1);
    const ImageLayout out = layout_of(c.channels, c.height, c.width, 2);
    Image x(in, normals(numbers_in(in)));
    Image y(out, normals(numbers_in(out)));
    Image dy(out, normals(numbers_in(out)));
    Image dx(in, normals(numbers_in(in)));
    const std::vector<float> weight = normals(c.channels), bias = normals(c.channels);
    Guarded<float> mean(c.groups, kLoud), inverse(c.groups, kLoud);
    Guarded<float> dweight(in.stride, kLoud), dbias(in.stride, kLoud);
    constexpr double kEpsilon = 1e-3;
    kernels().group_norm_forward({.in = in,
                                  .out = out,
                                  .groups = c.groups,
                                  .epsilon = static_cast<float>(kEpsilon),
                                  .weight = weight.data(),
                                  .bias = bias.data(),
                                  .x = x.values.data(),
                                  .y = y.values.data(),
                                  .mean = mean.data(),
                                  .inverse = inverse.data()});
    y.expect_clean();
    GroupNormBackward back{.in = in,
                           .out = out,
                           .groups = c.groups,
                           .weight = weight.data(),
                           .x = x.values.data(),
                           .dy = dy.values.data(),
                           .mean = mean.data(),
                           .inverse = inverse.data(),
                           .dx = dx.values.data(),
                           .dweight = dweight.data(),
                           .dbias = dbias.data()};
    kernels().group_norm_backward(back);
    dx.expect_clean();
    const std::vector<float> with_dx = dweight.values();
    back.dx = nullptr;
    kernels().group_norm_backward(back);
    EXPECT_EQ(dweight.values(), with_dx);

    const int per_group = c.channels / c.groups;
    for (int g = 0; g < c.groups; ++g) {
      struct Place {
        int row, column, channel;
      };
      std::vector<Place> places;
      for (int channel = g * per_group; channel < (g + 1) * per_group; ++channel)
        for (int row = 0; row < c.height; ++row)
          for (int column = 0; column < c.width; ++column) places.push_back({row, column, channel});
      const auto n = static_cast<double>(places.size());
      const auto number = [&](Image& image, const Place& p) {
        return static_cast<double>(image.at(p.row, p.column, p.channel));
      };
      double average = 0.0, variance = 0.0;
      for (const Place& p : places) average += number(x, p) / n;
      for (const Place& p : places) variance += std::pow(number(x, p) - average, 2) / n;
      const double scale = 1.0 / std::sqrt(variance + kEpsilon);
      const auto normed = [&](const Place& p) { return (number(x, p) - average) * scale; };
      for (const Place& p : places) {
        const double w = static_cast<double>(weight[static_cast<std::size_t>(p.channel)]);
        const double b = static_cast<double>(bias[static_cast<std::size_t>(p.channel)]);
        expect_near(number(y, p), normed(p) * w + b, 10.0, "group norm");
        // d normed(q) / d x(p) = scale (1 if p is q - 1/n - normed(p) normed(q) / n)
        double want = 0.0;
        for (const Place& q : places) {
          const double wq = static_cast<double>(weight[static_cast<std::size_t>(q.channel)]);
          want += number(dy, q) * wq * scale *
                  ((&p == &q ? 1.0 : 0.0) - 1.0 / n - normed(p) * normed(q) / n);
        }
        expect_near(number(dx, p), want, 20.0 * scale, "its gradient");
      }
      for (int channel = g * per_group; channel < (g + 1) * per_group; ++channel) {
        double by_weight = 0.0, by_bias = 0.0;
        for (const Place& p : places) {
          if (p.channel != channel) continue;
          by_weight += number(dy, p) * normed(p);
          by_bias += number(dy, p);
        }
        expect_near(static_cast<double>(dweight[channel]), by_weight, 20.0, "its weight's");
        expect_near(static_cast<double>(dbias[channel]), by_bias, 20.0, "its bias's");
      }
    }
    for (int channel = c.channels; channel < in.stride; ++channel) {
      EXPECT_EQ(dweight[channel], 0.0f);
      EXPECT_EQ(dbias[channel], 0.0f);
    }
  }
}

// --- Recurrent cells ---

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct State {
  double c, h;
};
/// One unit of an LSTM, from its gates' sums i, f, g, o.
State lstm_unit(const std::vector<double>& sums, double c_before) {
  const double c = sigmoid(sums[1]) * c_before + sigmoid(sums[0]) * std::tanh(sums[2]);
  return {c, sigmoid(sums[3]) * std::tanh(c)};
}
/// One unit of a GRU, from W_n x + b_n, the sums of r and of z, and U_n h + b'_n.
double gru_unit(const std::vector<double>& sums, double h_before) {
  const double r = sigmoid(sums[1]), z = sigmoid(sums[2]);
  return (1.0 - z) * std::tanh(sums[0] + r * sums[3]) + z * h_before;
}
/// d f / d v[k], by a central difference.
double slope(const std::function<double(const std::vector<double>&)>& f, std::vector<double> v,
             std::size_t k) {
  constexpr double kStep = 1e-5;
  v[k] += kStep;
  const double above = f(v);
  v[k] -= 2.0 * kStep;
  return (above - f(v)) / (2.0 * kStep);
}

/// Examples whose numbers lie apart, in no order; of 0 rows nothing is written.
struct RowCounts {
  int units;
  std::vector<std::int32_t> row;
  std::int64_t size;
};
RowCounts rows_of(int count, int units) {
  const int each = 4 * units + 5;
  RowCounts r{.units = units, .row = {}, .size = std::int64_t{each} * (count + 1)};
  for (int m = 0; m < count; ++m) r.row.push_back(each * ((m * 2 + 1) % (count + 1)));
  return r;
}

TEST_P(CpuLayerKernel, LstmStepsForwardAndBackward) {
  for (const int count : {0, 1, 4})
    for (const int units : {16, 48})
      for (const bool with_nan : {false, true}) {
        const RowCounts r = rows_of(count, units);
        Guarded<float> gates(normals(r.size)), before(normals(r.size)), c(r.size, kLoud);
        Guarded<float> c_tanh(r.size, kLoud), h(r.size, kLoud), dh(normals(r.size));
        Guarded<float> dc(normals(r.size));
        if (with_nan && count > 1) gates[r.row[1]] = kNan;
        const std::vector<float> sums = gates.values(), dc_after = dc.values();
        const LstmStep step{.row = r.row.data(),
                            .rows = count,
                            .units = units,
                            .gates = gates.data(),
                            .c_before = before.data(),
                            .c = c.data(),
                            .c_tanh = c_tanh.data(),
                            .h = h.data(),
                            .dh = dh.data(),
                            .dc = dc.data()};
        kernels().lstm_forward(step);
        const std::vector<float> values = h.values();
        kernels().lstm_backward(step);
        std::vector<bool> touched(static_cast<std::size_t>(r.size));
        for (int m = 0; m < count; ++m)
          for (int j = 0; j < units; ++j) {
            const std::int64_t at = r.row[static_cast<std::size_t>(m)] + j;
            touched[static_cast<std::size_t>(at)] = true;
            std::vector<double> v(5);
            for (int k = 0; k < 4; ++k)
              v[static_cast<std::size_t>(k)] =
                  static_cast<double>(sums[static_cast<std::size_t>(at + std::int64_t{k} * units)]);
            v[4] = static_cast<double>(before[at]);
            if (std::isnan(v[0])) {
              EXPECT_TRUE(std::isnan(values[static_cast<std::size_t>(at)]));
              continue;
            }
            const State state = lstm_unit(v, v[4]);
            expect_near(static_cast<double>(c[at]), state.c, 2.0 + std::abs(state.c), "c");
            expect_near(static_cast<double>(h[at]), state.h, 2.0, "h");
            const double g_h = static_cast<double>(dh[at]);
            const double g_c = static_cast<double>(dc_after[static_cast<std::size_t>(at)]);
            const auto loss = [&](const std::vector<double>& x) {
              const State s = lstm_unit(x, x[4]);
              return g_h * s.h + g_c * s.c;
            };
            const double size = (1.0 + std::abs(g_h) + std::abs(g_c)) * (1.0 + std::abs(v[4]));
            for (int k = 0; k < 4; ++k)
              expect_near(static_cast<double>(gates[at + std::int64_t{k} * units]),
                          slope(loss, v, static_cast<std::size_t>(k)), 4.0 * size,
                          "gate " + std::to_string(k));
            expect_near(static_cast<double>(dc[at]), slope(loss, v, 4), 4.0 * size, "dc");
          }
        for (std::size_t i = 0; i < touched.size(); ++i)
          if (!touched[i]) {
            EXPECT_EQ(c.values()[i], kLoud);
            EXPECT_EQ(h.values()[i], kLoud);
            EXPECT_EQ(dc.values()[i], dc_after[i]);
          }
      }
}

TEST_P(CpuLayerKernel, GruStepsForwardAndBackward) {
  for (const int count : {0, 1, 4})
    for (const int units : {16, 48})
      for (const bool with_nan : {false, true}) {
        const RowCounts r = rows_of(count, units);
        Guarded<float> gates(normals(r.size)), before(normals(r.size)), h(r.size, kLoud);
        Guarded<float> dh(normals(r.size)), bias(normals(std::int64_t{3} * units));
        if (with_nan && count > 1) gates[r.row[1]] = kNan;
        const std::vector<float> sums = gates.values(), dh_after = dh.values();
        const GruStep step{.row = r.row.data(),
                           .rows = count,
                           .units = units,
                           .gates = gates.data(),
                           .bias = bias.data(),
                           .h_before = before.data(),
                           .h = h.data(),
                           .dh = dh.data()};
        kernels().gru_forward(step);
        const std::vector<float> values = h.values();
        kernels().gru_backward(step);
        std::vector<bool> touched(static_cast<std::size_t>(r.size));
        for (int m = 0; m < count; ++m)
          for (int j = 0; j < units; ++j) {
            const std::int64_t at = r.row[static_cast<std::size_t>(m)] + j;
            touched[static_cast<std::size_t>(at)] = true;
            std::vector<double> v(5);
            for (int k = 0; k < 4; ++k) {
              v[static_cast<std::size_t>(k)] =
                  static_cast<double>(sums[static_cast<std::size_t>(at + std::int64_t{k} * units)]);
              if (k > 0)
                v[static_cast<std::size_t>(k)] +=
                    static_cast<double>(bias[std::int64_t{k - 1} * units + j]);
            }
            v[4] = static_cast<double>(before[at]);
            if (std::isnan(v[0])) {
              EXPECT_TRUE(std::isnan(values[static_cast<std::size_t>(at)]));
              continue;
            }
            expect_near(static_cast<double>(h[at]), gru_unit(v, v[4]), 2.0 + std::abs(v[4]), "h");
            const double g = static_cast<double>(dh_after[static_cast<std::size_t>(at)]);
            const auto loss = [&](const std::vector<double>& x) { return g * gru_unit(x, v[4]); };
            const double size = (1.0 + std::abs(g)) * (1.0 + std::abs(v[4]) + std::abs(v[3]));
            for (int k = 0; k < 4; ++k)
              expect_near(static_cast<double>(gates[at + std::int64_t{k} * units]),
                          slope(loss, v, static_cast<std::size_t>(k)), 4.0 * size,
                          "gate " + std::to_string(k));
            // What reaches h_before past the gates alone; through U it goes by another product.
            expect_near(static_cast<double>(dh[at]), g * sigmoid(v[2]), 4.0 * size, "dh");
          }
        for (std::size_t i = 0; i < touched.size(); ++i)
          if (!touched[i]) {
            EXPECT_EQ(h.values()[i], kLoud);
            EXPECT_EQ(dh.values()[i], dh_after[i]);
          }
      }
}

INSTANTIATE_TEST_SUITE_P(All, CpuLayerKernel,
                         testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512),
                         [](const auto& i) { return std::string(simd_name(i.param)); });

}  // namespace
}  // namespace cudp
