#pragma once
// The kernels of single layers, against loops in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/layers/activation.cuh"
#include "kernels/layers/group_norm.cuh"
#include "kernels/layers/image.cuh"
#include "kernels/layers/loss.cuh"
#include "kernels/layers/pool.cuh"
#include "runtime/data/examples.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"

namespace cudp {
namespace {

/// Rows of a table by their codes, of one, two and four bytes; a code may stand for no feature.
TEST_F(CudaKernel, LoadsRowsOfATableByTheirCodes) {
  for (const int features : {9, 300, 70'000}) {
    RowLayout layout{.number_feature = {1, features - 1}, .codes = 3, .features = features};
    const auto none = static_cast<std::uint32_t>(features);
    const std::vector<float> numbers{0.5f, -2.0f, 0.0f, 1e19f, -0.25f, 3.0f};
    const std::vector<std::uint32_t> codes{0, none - 3, 3, none, 4, 2, none - 2, none, none};
    const Dataset data = coded_dataset(layout, numbers, codes, {1, 0, 1}, 2);
    const std::vector<float> want = dense(data).floats;
    device::Load a{};
    a.batch = batch(0, 2, 2);
    a.examples = device(std::vector<std::uint32_t>{2, 0});
    a.coded = layout.view(device(data.coded));
    a.coded.number_feature = device(layout.number_feature);
    a.labels = device(data.labels);
    a.planes = Planes{.channels = features};
    const auto row = static_cast<std::size_t>(features);
    a.x = device(std::vector<float>(2 * row, kLoud));
    a.x_label = device(std::vector<std::uint8_t>(2, 9));
    run(load_kernel, a);
    const std::vector<float> got = host(a.x, 2 * row);
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + features,
                           want.begin() + std::ptrdiff_t{2} * features));
    EXPECT_TRUE(std::equal(got.begin() + features, got.end(), want.begin()));
    EXPECT_EQ(host(a.x_label, 2), (std::vector<std::uint8_t>{1, 1}));
    a.floats = a.x;
    EXPECT_THROW(validate(a), std::invalid_argument) << "rows of two kinds";
    a.floats = nullptr;
    a.planes.channels += 1;
    EXPECT_THROW(validate(a), std::invalid_argument) << "rows of other features";
  }
}

TEST_F(CudaKernel, LoadsBytesAndFloatsByNumber) {
  const Planes planes{2, 3, 5, 2};
  constexpr int kCapacity = 4;
  const int pixels = planes.pixels();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(6 * pixels));
  std::vector<float> floats(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 7);
    floats[i] = 0.5f * static_cast<float>(bytes[i]) - 3.0f;
  }
  const std::vector<std::uint8_t> labels{9, 8, 7, 6, 5, 4};
  const std::vector<std::uint32_t> list{9, 5, 0, 3, 2};  // the batch starts at 1
  for (const bool as_bytes : {true, false})
    for (const bool listed : {true, false}) {
      device::Load a{};
      a.batch = batch(1, kCapacity, 4);  // three examples
      a.examples = listed ? device(list) : nullptr;
      a.bytes = as_bytes ? device(bytes) : nullptr;
      a.floats = as_bytes ? nullptr : device(floats);
      a.labels = device(labels);
      a.scale = 0.5f;
      a.shift = -3.0f;
      a.planes = planes;
      a.x = device(std::vector<float>(static_cast<std::size_t>(kCapacity * planes.size()), kLoud));
      a.x_label = device(std::vector<std::uint8_t>(kCapacity, 77));
      run(load_kernel, a);
      const std::vector<float> x = host(a.x, std::size_t{kCapacity} * planes.size());
      const std::vector<std::uint8_t> label = host(a.x_label, kCapacity);
      std::vector<float> want(x.size(), kLoud);
      for (int e = 0; e < 3; ++e) {
        const std::uint32_t from = listed ? list[1 + e] : 1 + e;
        for (int i = 0; i < pixels; ++i)
          want[e * planes.size() + planes.pixel_offset(i)] = floats[from * pixels + i];
        EXPECT_EQ(label[e], labels[from]);
      }
      EXPECT_EQ(label[3], 77);
      EXPECT_EQ(x, want);
    }
}

TEST_F(CudaKernel, ActivationsLeaveBordersAlone) {
  const Planes from{3, 4, 2, 1};
  const Planes to{3, 4, 2, 0};
  constexpr int kCapacity = 3;
  const std::vector<float> x = images(from, kCapacity, kLoud, 1);
  const std::vector<float> dy = images(from, kCapacity, kLoud, 2);
  for (const Activation kind : {Activation::relu, Activation::tanh, Activation::tempered_sigmoid}) {
    const Activate f{kind, 1.5f, 2.5f, 0.7f};
    const auto value = [&](double v) {
      return kind == Activation::relu   ? std::max(v, 0.0)
             : kind == Activation::tanh ? std::tanh(v)
                                        : 1.5 / (1.0 + std::exp(-2.5 * v)) - 0.7;
    };
    const auto derivative = [&](double v) { return (value(v + 1e-6) - value(v - 1e-6)) / 2e-6; };
    device::ActivationPass a{};
    a.batch = batch(0, kCapacity, 2);
    a.function = f;
    a.from = device(x);
    a.from_planes = from;
    a.to = device(std::vector<float>(static_cast<std::size_t>(kCapacity * to.size()), kLoud));
    a.to_planes = to;
    run(activation_kernel, a);
    const std::vector<float> y = host(a.to, std::size_t{kCapacity} * to.size());
    device::ActivationPass back = a;
    back.from = device(dy);
    back.y = a.to;
    back.y_planes = to;
    back.to = device(x);
    back.to_planes = from;
    run(activation_kernel, back);
    const std::vector<float> dx = host(back.to, x.size());
    std::vector<bool> inside(x.size());
    for (int e = 0; e < kCapacity; ++e)
      for (int i = 0; i < to.pixels(); ++i) {
        const int at = e * from.size() + from.pixel_offset(i);
        if (e >= 2) {
          EXPECT_EQ(y[e * to.size() + i], kLoud);
          continue;
        }
        inside[at] = true;
        expect_near(y[e * to.size() + i], value(x[at]), 1.0, at);
        expect_near(dx[at], dy[at] * derivative(x[at]), std::abs(dy[at]) + 1e-3, at);
      }
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(inside[i] || dx[i] == x[i]) << i;
  }
}

/// By numbers that are no powers of two, by those that are, and by 1; up to where ints end.
TEST(AnyDivisor, DividesWhatADivisionDoes) {
  std::mt19937 random(1);
  for (int n = 1; n < 70'000; n = n < 300 ? n + 1 : n * 5 / 4 + 1)
    for (const int by : {n, n - 1 + (1 << 15), (1 << 30) + n, (1 << 30) - 1 + n}) {
      const AnyDivisor d(by);
      for (int i = 0; i < 50; ++i) {
        const auto any = static_cast<int>(random() >> (1 + i % 31));
        const int line = any / by * by;
        for (const int at : {any, line, line > 0 ? line - 1 : 0, 0x7fffffff})
          ASSERT_EQ(quotient(at, d), at / by) << at << " / " << by;
      }
    }
}

TEST(CountedPlanes, FindPixelsWhereTheyLie) {
  for (const Planes& p : {Planes{3, 4, 5, 1}, Planes{2, 7, 1, 0}, Planes{1, 1, 9, 2}, Planes{11},
                          Planes{4, 1, 1, 1}}) {
    const CountedPlanes counted = p;
    for (int i = 0; i < p.pixels(); ++i) {
      EXPECT_EQ(counted.pixel_offset(i), p.pixel_offset(i));
      EXPECT_EQ(counted.at(counted.pixel(i)), p.pixel_offset(i));
    }
  }
}

/// Where tensor cores read it next, what a layer writes is rounded, and else the same.
TEST_F(CudaKernel, LayersRoundWhatTensorCoresRead) {
  const Planes planes{2, 4, 6, 1};
  constexpr int kCapacity = 2;
  const auto cells = std::size_t{kCapacity} * planes.size();
  const float* const x = device(images(planes, kCapacity, 0.0f, 1));
  const float* const y = device(images(planes, kCapacity, 0.0f, 2));
  const std::vector<float> zeros(cells, 0.0f);
  const auto expect_rounded = [&](const auto& write) {
    const std::vector<float> plain = host(write(Precision::fp32), cells);
    const std::vector<float> rounded = nearest_tf32(plain);
    EXPECT_NE(plain, rounded);
    EXPECT_EQ(host(write(Precision::tf32), cells), rounded);
  };
  for (const bool back : {false, true})
    expect_rounded([&](Precision as) {
      device::ActivationPass a{};
      a.batch = batch(0, kCapacity, kCapacity);
      a.function = {.kind = Activation::tanh};
      a.from = x;
      a.y = back ? y : nullptr;
      a.from_planes = a.y_planes = a.to_planes = planes;
      a.to = device(zeros);
      a.to_as = as;
      run(activation_kernel, a);
      return a.to;
    });
  expect_rounded([&](Precision as) {
    device::Load a{};
    a.batch = batch(0, kCapacity, kCapacity);
    a.floats = x;
    a.labels = device(std::vector<std::uint8_t>(kCapacity, 0));
    a.planes = planes;
    a.x = device(zeros);
    a.x_label = device(std::vector<std::uint8_t>(kCapacity, 0));
    a.x_as = as;
    run(load_kernel, a);
    return a.x;
  });
  for (const bool back : {false, true})
    expect_rounded([&](Precision as) {
      device::Pool a{};
      a.batch = batch(0, kCapacity, kCapacity);
      a.kernel = a.stride = AnyDivisor(1);
      a.x = x;
      a.x_planes = planes;
      (back ? a.dy_planes : a.y_planes) = planes;
      float* const to = device(zeros);
      if (back) {
        a.dy = y;
        a.dx = to;
        a.dx_planes = a.cells = planes;
      } else {
        a.y = to;
      }
      a.epilogue.stored_as = as;
      run(back ? pool_backward_kernel : pool_kernel, a);
      return to;
    });
  expect_rounded([&](Precision as) {
    device::LossValues a{};
    a.batch = batch(0, kCapacity, kCapacity);
    a.loss = Loss::softmax_cross_entropy;
    a.outputs = planes.channels;
    a.logits = device(normals(std::size_t{kCapacity} * planes.channels, 6));
    a.label = device(std::vector<std::uint8_t>(kCapacity, 0));
    a.value = device(std::vector<float>(kCapacity));
    a.logit_gradient = device(zeros);
    a.gradient = device(zeros);
    a.gradient_planes = Planes{planes.channels, 1, 1, 1};
    a.gradient_as = as;
    run(loss_kernel, a);
    return a.gradient;
  });
  for (const bool back : {false, true})
    expect_rounded([&](Precision as) {
      const float* const statistics = device(std::vector<float>{0.1f, 1.2f, -0.1f, 0.9f});
      float* const to = device(zeros);
      const float* const weight = device(std::vector<float>{0.7f, 1.1f});
      if (back) {
        device::GroupNormBackward a{};
        a.batch = batch(0, kCapacity, kCapacity);
        a.groups = 1;
        a.weight = weight;
        a.x = x;
        a.dy = y;
        a.x_planes = a.dy_planes = a.dx_planes = planes;
        a.statistics = statistics;
        a.dx = to;
        a.gradient = device(zeros);
        a.parts = device(zeros);
        a.dx_as = as;
        run(group_norm_backward_kernel, a);
      } else {
        device::GroupNorm a{};
        a.batch = batch(0, kCapacity, kCapacity);
        a.groups = 1;
        a.epsilon = 1e-3f;
        a.weight = a.bias = weight;
        a.x = x;
        a.x_planes = a.y_planes = planes;
        a.y = to;
        a.statistics = device(zeros);
        a.y_as = as;
        run(group_norm_kernel, a);
      }
      return to;
    });
}

struct PoolCase {
  bool is_max;
  int kernel, stride;
};

TEST_F(CudaKernel, PoolsOverlapAndLeaveTails) {
  constexpr int kCapacity = 3;
  for (const PoolCase c : {PoolCase{true, 2, 1}, PoolCase{true, 3, 2}, PoolCase{false, 2, 2},
                           PoolCase{false, 3, 1}, PoolCase{true, 1, 3}, PoolCase{false, 2, 3},
                           PoolCase{true, 16, 2}, PoolCase{true, 17, 2}}) {
    const Planes x_planes = c.kernel < 4 ? Planes{2, 7, 5, 1} : Planes{2, 21, 19, 1};
    const Planes y_planes{2, (x_planes.height - c.kernel) / c.stride + 1,
                          (x_planes.width - c.kernel) / c.stride + 1, 2};
    std::vector<float> x = images(x_planes, kCapacity, kLoud, 1);
    for (float& v : x)
      if (v < 1e9f) v = std::round(2.0f * v);  // ties
    const std::vector<float> dy = images(y_planes, kCapacity, kLoud, 2);
    device::Pool a{};
    a.batch = batch(0, kCapacity, 2);
    a.is_max = c.is_max;
    a.kernel = AnyDivisor(c.kernel);
    a.stride = AnyDivisor(c.stride);
    a.x = device(x);
    a.x_planes = x_planes;
    const auto y_cells = std::size_t{kCapacity} * y_planes.size();
    a.y = device(std::vector<float>(y_cells, kLoud));
    a.y_planes = y_planes;
    if (device::stores_argmax(c.is_max, c.kernel))
      a.argmax = device(
          std::vector<std::uint8_t>(static_cast<std::size_t>(kCapacity * y_planes.pixels()), 99));
    run(pool_kernel, a);
    const std::vector<float> y = host(a.y, y_cells);
    device::Pool back = a;
    back.y = nullptr;
    back.dy = device(dy);
    back.dy_planes = y_planes;
    back.dx = device(std::vector<float>(x.size(), kLoud));
    back.dx_planes = x_planes;
    back.cells = device::pool_cells(x_planes, c.kernel, c.stride);
    run(pool_backward_kernel, back);
    const std::vector<float> dx = host(back.dx, x.size());

    std::vector<double> want_y(y_cells, kLoud);
    std::vector<double> want_dx(x.size(), kLoud);
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < x_planes.pixels(); ++i)
        want_dx[e * x_planes.size() + x_planes.pixel_offset(i)] = 0;
      for (int ch = 0; ch < x_planes.channels; ++ch)
        for (int oy = 0; oy < y_planes.height; ++oy)
          for (int ox = 0; ox < y_planes.width; ++ox) {
            const int to = e * y_planes.size() + y_planes.at(ch, oy, ox);
            int best = -1;
            double mean = 0.0;
            for (int k = 0; k < c.kernel * c.kernel; ++k) {
              const int from = e * x_planes.size() + x_planes.at(ch, oy * c.stride + k / c.kernel,
                                                                 ox * c.stride + k % c.kernel);
              if (best < 0 || x[from] > x[best]) best = from;
              mean += x[from] / static_cast<double>(c.kernel * c.kernel);
              if (!c.is_max) want_dx[from] += dy[to] / static_cast<double>(c.kernel * c.kernel);
            }
            want_y[to] = c.is_max ? x[best] : mean;
            if (c.is_max) want_dx[best] += dy[to];
          }
    }
    for (std::size_t i = 0; i < y_cells; ++i)
      expect_near(y[i], want_y[i], std::abs(want_y[i]) + 1.0, static_cast<int>(i));
    for (std::size_t i = 0; i < x.size(); ++i)
      expect_near(dx[i], want_dx[i], std::abs(want_dx[i]) + 1.0, static_cast<int>(i));
  }
}

TEST_F(CudaKernel, MaximumOfANanIsNan) {
  const Planes in{1, 2, 2, 0};
  for (int at = 0; at < 4; ++at) {
    std::vector<float> x{1.0f, 2.0f, 3.0f, 4.0f};
    x[static_cast<std::size_t>(at)] = kNan;
    device::Pool a{};
    a.batch = batch(0, 1, 1);
    a.is_max = true;
    a.kernel = AnyDivisor(2);
    a.stride = AnyDivisor(1);
    a.x = device(x);
    a.x_planes = in;
    a.y = device(std::vector<float>{0.0f});
    a.y_planes = Planes{1, 1, 1, 0};
    a.argmax = device(std::vector<std::uint8_t>{9});
    run(pool_kernel, a);
    EXPECT_TRUE(std::isnan(host(a.y, 1)[0]));
  }
}

TEST_F(CudaKernel, GroupNormAndItsGradient) {
  const Planes x_planes{6, 5, 7, 1};
  const Planes y_planes{6, 5, 7, 0};
  constexpr int kCapacity = 3;
  const std::vector<float> weight = normals(6, 3);
  const std::vector<float> bias = normals(6, 4);
  const std::vector<float> x = images(x_planes, kCapacity, kLoud, 1);
  const std::vector<float> dy = images(x_planes, kCapacity, kLoud, 2);
  for (const int groups : {1, 2, 6}) {
    device::GroupNorm a{};
    a.batch = batch(0, kCapacity, 2);
    a.groups = groups;
    a.epsilon = 1e-3f;
    a.weight = device(weight);
    a.bias = device(bias);
    a.x = device(x);
    a.x_planes = x_planes;
    const auto cells = std::size_t{kCapacity} * y_planes.size();
    a.y = device(std::vector<float>(cells, kLoud));
    a.y_planes = y_planes;
    a.statistics =
        device(std::vector<float>(static_cast<std::size_t>(2 * kCapacity * groups), kLoud));
    run(group_norm_kernel, a);
    const std::vector<float> y = host(a.y, cells);

    device::GroupNormBackward b{};
    b.batch = a.batch;
    b.groups = groups;
    b.weight = a.weight;
    b.x = a.x;
    b.x_planes = x_planes;
    b.dy = device(dy);
    b.dy_planes = x_planes;
    b.statistics = a.statistics;
    b.dx = device(std::vector<float>(cells, kLoud));
    b.dx_planes = y_planes;
    b.gradient = device(std::vector<float>(static_cast<std::size_t>(kCapacity * 12), kLoud));
    b.parts = device(std::vector<float>(static_cast<std::size_t>(kCapacity * groups), kLoud));
    run(group_norm_backward_kernel, b);
    const std::vector<float> dx = host(b.dx, cells);
    const std::vector<float> gradient = host(b.gradient, std::size_t{kCapacity} * 12);
    const std::vector<float> parts = host(b.parts, std::size_t{kCapacity} * groups);

    const int count = 210 / groups;
    for (int e = 0; e < kCapacity; ++e)
      for (int g = 0; g < groups; ++g) {
        if (e == 2) {
          EXPECT_EQ(y[static_cast<std::size_t>(e * 210)], kLoud);
          EXPECT_EQ(parts[static_cast<std::size_t>(g * kCapacity + e)], kLoud);
          continue;
        }
        const auto at = [&](const std::vector<float>& v, int i) {
          return static_cast<double>(v[e * x_planes.size() + x_planes.pixel_offset(g * count + i)]);
        };
        double mean = 0, variance = 0;
        for (int i = 0; i < count; ++i) mean += at(x, i) / count;
        for (int i = 0; i < count; ++i) variance += std::pow(at(x, i) - mean, 2) / count;
        const double inverse = 1 / std::sqrt(variance + 1e-3);
        double dw[6] = {}, db[6] = {}, mean_u = 0, mean_uz = 0;
        for (int i = 0; i < count; ++i) {
          const int c = (g * count + i) / 35;
          const double z = (at(x, i) - mean) * inverse;
          dw[c] += at(dy, i) * z;
          db[c] += at(dy, i);
          mean_u += at(dy, i) * weight[c] / count;
          mean_uz += at(dy, i) * weight[c] * z / count;
        }
        double square = 0;
        for (int i = 0; i < count; ++i) {
          const int c = (g * count + i) / 35;
          const int index = e * 210 + g * count + i;
          const double z = (at(x, i) - mean) * inverse;
          expect_near(y[index], z * weight[c] + bias[c], 5, index);
          expect_near(dx[index], (at(dy, i) * weight[c] - mean_u - z * mean_uz) * inverse, 5,
                      index);
        }
        for (int c = g * 6 / groups; c < (g + 1) * 6 / groups; ++c) {
          expect_near(gradient[e * 12 + c], dw[c], 35, c);
          expect_near(gradient[e * 12 + 6 + c], db[c], 35, c);
          square += dw[c] * dw[c] + db[c] * db[c];
        }
        expect_near(parts[g * kCapacity + e], square, square, e);
      }
  }
}

TEST_F(CudaKernel, LossesGoToTheGradientsPlanes) {
  const Planes planes{3, 1, 1, 1};
  constexpr int kCapacity = 70;
  const std::vector<float> z = normals(std::size_t{3} * kCapacity, 5);
  std::vector<std::uint8_t> label(kCapacity);
  for (int e = 0; e < kCapacity; ++e) label[e] = static_cast<std::uint8_t>(e % 3);
  device::LossValues a{};
  a.batch = batch(0, kCapacity, kCapacity - 1);
  a.loss = Loss::softmax_cross_entropy;
  a.outputs = 3;
  a.logits = device(z);
  a.label = device(label);
  a.value = device(std::vector<float>(kCapacity, kLoud));
  a.logit_gradient = device(std::vector<float>(std::size_t{3} * kCapacity, kLoud));
  const auto cells = std::size_t{kCapacity} * planes.size();
  a.gradient = device(std::vector<float>(cells, kLoud));
  a.gradient_planes = planes;
  run(loss_kernel, a);
  const std::vector<float> value = host(a.value, kCapacity);
  const std::vector<float> gradient = host(a.gradient, cells);
  for (int e = 0; e + 1 < kCapacity; ++e) {
    double total = 0;
    for (int c = 0; c < 3; ++c) total += std::exp(static_cast<double>(z[3 * e + c]));
    expect_near(value[e], std::log(total) - z[3 * e + label[e]], 1, e);
    for (int c = 0; c < 3; ++c)
      expect_near(gradient[e * planes.size() + planes.at(c, 0, 0)],
                  std::exp(static_cast<double>(z[3 * e + c])) / total - (c == label[e]), 1, e);
    EXPECT_EQ(gradient[static_cast<std::size_t>(e) * planes.size()], kLoud);
  }
  EXPECT_EQ(value[kCapacity - 1], kLoud);
}

}  // namespace
}  // namespace cudp
