#pragma once
// Weight gradients from patches of planes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/compiled_products.hpp"
#include "tests/kernels/cuda_product_tests.hpp"

namespace cudp {
namespace {

struct PatchCase {
  int channels, height, width, columns, stride, pad;
  int more_border;  // of x, than the padding asks for
  int dy_border;
};
constexpr PatchCase kPatchCases[] = {{32, 8, 8, 40, 1, 1, 0, 1},   {35, 4, 4, 70, 1, 1, 1, 1},
                                     {16, 16, 16, 32, 2, 1, 0, 2}, {33, 6, 10, 5, 1, 0, 1, 0},
                                     {64, 2, 32, 32, 1, 1, 0, 1},  {17, 7, 7, 33, 1, 1, 0, 1},
                                     {16, 6, 1, 40, 1, 1, 0, 0}};
constexpr std::size_t kPatchCapacity = std::size_t{47} * 1024;

/// The planes of a case, in patches of `lines` lines; 0: of as many as possible.
ConvPatch patch_of(const PatchCase& c, int lines = 0) {
  const auto out = [&](int n) { return (n + 2 * c.pad - 3) / c.stride + 1; };
  const ConvPatch p{.x = {c.channels, c.height, c.width, c.pad + c.more_border},
                    .dy = {c.columns, out(c.height), out(c.width), c.dy_border},
                    .stride = c.stride,
                    .corner = c.more_border};
  return lines > 0 ? with_lines(p, lines) : conv_patch(p, c.columns, kPatchCapacity);
}

class CudaPatch : public CudaKernel {
 protected:
  static constexpr int kCapacity = 5;
  static constexpr unsigned kLive = 4;

  /// Largest derivative of each example's loss by its logits. Its dy is as large.
  std::vector<float> sizes_{0x1p9f, 0.5f, 0x1p-24f, 1.0f, 16.0f};

  /// Numbers of planes, rounded to TF32. Borders of dy are NaN, and so is what fills up the rows of
  /// x. has_nan: those of example 1 have a NaN, too.
  std::pair<std::vector<float>, std::vector<float>> numbers(const ConvPatch& p, bool has_nan) {
    std::vector<float> x = nearest_tf32(images(p.x, kCapacity, kNan, 1));
    std::vector<float> dy = nearest_tf32(images(p.dy, kCapacity, kNan, 2));
    const int row = p.x.row();
    for (int i = 0; i < kCapacity * p.x.size(); ++i) {
      const int y = i % p.x.plane() / row;
      const bool padding = y < p.x.border || y >= p.x.border + p.x.height || i % row < p.x.border ||
                           i % row >= p.x.border + p.x.width;
      if (padding && i % row < p.x.width + 2 * p.x.border) x[i] = 0.0f;
    }
    for (int i = 0; i < kCapacity * p.dy.size(); ++i) dy[i] *= sizes_[i / p.dy.size()];
    if (has_nan) dy[p.dy.size() + p.dy.at(0, 0, 0)] = kNan;
    return {x, dy};
  }
  WeightGradient gradient(const ConvPatch& p, bool has_nan = false) {
    const auto [x, dy] = numbers(p, has_nan);
    return gradient(p, x, dy);
  }
  WeightGradient gradient(const ConvPatch& p, const std::vector<float>& x,
                          const std::vector<float>& dy) {
    const int row = p.x.row();
    std::vector<std::int32_t> taps, corners, pixels;
    for (int i = 0; i < kPatchTaps * p.x.channels; ++i)
      taps.push_back(i / 9 * p.x.plane() + i % 9 / 3 * row + i % 3);
    for (int i = 0; i < p.dy.height * p.dy.width; ++i) {
      const int y = i / p.dy.width;
      const int at = i % p.dy.width;
      corners.push_back((y * p.stride + p.corner) * row + at * p.stride + p.corner);
      pixels.push_back(p.dy.at(0, y, at));
    }
    const auto n = static_cast<std::int32_t>(corners.size());
    WeightGradient g{};
    g.batch = batch(0, kCapacity, kLive);
    g.x = {.data = device(x),
           .line = {device(taps), 0, 0, 0},
           .term = {device(corners), n, p.x.size(), 0},
           .along_terms = true};
    g.dy = {.data = device(dy),
            .line = {nullptr, 0, 0, p.dy.plane()},
            .term = {device(pixels), n, p.dy.size(), 0},
            .along_terms = true};
    g.rows = kPatchTaps * p.x.channels;
    g.columns = p.dy.channels;
    g.terms_per_example = n;
    g.patch = p;
    std::vector<float> logits;  // the largest one, which may be negative, is of either
    for (const float size : sizes_) {
      const bool is_first = logits.size() % 4 == 0;
      logits.push_back(is_first ? -size : 0.25f * size);
      logits.push_back(is_first ? 0.25f * size : size);
    }
    g.logit_gradients = device(logits);
    g.outputs = 2;
    return g;
  }

  /// G(i, j) at j rows + i, then the bias; and of each number the sum of its terms' absolute
  /// values.
  static std::pair<std::vector<double>, std::vector<double>> in_double(const ConvPatch& p,
                                                                       const std::vector<float>& x,
                                                                       const std::vector<float>& dy,
                                                                       int e) {
    const int rows = kPatchTaps * p.x.channels;
    const auto d = static_cast<std::size_t>(rows + 1) * p.dy.channels;
    std::vector<double> g(d), sizes(d);
    const auto add = [&](int at, double v) {
      g[static_cast<std::size_t>(at)] += v;
      sizes[static_cast<std::size_t>(at)] += std::abs(v);
    };
    for (int j = 0; j < p.dy.channels; ++j)
      for (int y = 0; y < p.dy.height; ++y)
        for (int i = 0; i < p.dy.width; ++i) {
          const double gradient = dy[e * p.dy.size() + p.dy.at(j, y, i)];
          add(p.dy.channels * rows + j, gradient);
          for (int r = 0; r < rows; ++r) {
            const int tap = r % kPatchTaps;
            const int line = y * p.stride + p.corner + tap / 3;
            const int column = i * p.stride + p.corner + tap % 3;
            const int x_at = r / kPatchTaps * p.x.plane() + line * p.x.row() + column;
            add(j * rows + r, gradient * x[e * p.x.size() + x_at]);
          }
        }
    return {g, sizes};
  }
  /// [kCapacity, parameters]; kLoud where nothing is written.
  std::vector<float> single_gradients(const WeightGradient& g) {
    const auto d = static_cast<std::size_t>(g.rows + 1) * g.columns;
    const WeightGradientRows a{g, device(std::vector<float>(d * kCapacity, kLoud)),
                               static_cast<std::int64_t>(d)};
    run(patch_gradient_rows_kernel<PatchTile<kPatchSumColumns>>, a);
    return host(a.gradients, d * kCapacity);
  }
  std::vector<FixedPoint> clipped_sum(const WeightGradient& g, const std::vector<float>& factors,
                                      float inverse_grid, int stripes = 2) {
    const auto d = static_cast<std::size_t>(g.rows + 1) * g.columns;
    WeightGradientSum a{};
    a.gradient = g;
    a.factors = device(factors);
    a.factor_stride = 1;
    a.stripes = stripes;
    a.sum = device(std::vector<FixedPoint>(d, 0));
    a.scale = device_scale(1.0f, 1.0 / static_cast<double>(inverse_grid));
    run(patch_gradient_sum_kernel<PatchTile<kPatchSumColumns>>, a);
    return host(a.sum, d);
  }
  /// The squared norm of each example, by tiles: [tiles, kCapacity].
  std::vector<float> norm_parts(const WeightGradient& g) {
    const auto tiles =
        static_cast<std::size_t>(gradient_tiles(g.rows, g.columns, patch_columns(g.columns)));
    const WeightGradientNorm a{g, device(std::vector<float>(tiles * kCapacity, kLoud))};
    if (g.columns <= 32)
      run(patch_gradient_norm_kernel<PatchTile<32>>, a);
    else
      run(patch_gradient_norm_kernel<PatchTile<64>>, a);
    return host(a.parts, tiles * kCapacity);
  }
  static double square_of(const std::vector<float>& parts, std::size_t e) {
    double square = 0.0;
    for (std::size_t t = e; t < parts.size(); t += kCapacity) square += parts[t];
    return square;
  }
};

/// Operands are numbers that fp16 holds, so a gradient's error is that of float32 sums. Patches of
/// whole steps have the same bits, of however many lines they are.
TEST_F(CudaPatch, AreTheGradientsOfEachExample) {
  for (const PatchCase& c : kPatchCases) {
    const ConvPatch most = patch_of(c);
    ASSERT_GT(most.lines, 0);
    const auto [x, dy] = numbers(most, false);
    std::vector<std::uint32_t> whole_steps;
    for (int lines = 1; lines <= most.lines; ++lines) {
      if (most.dy.height % lines != 0 || lines * most.dy.row() < 2) continue;
      SCOPED_TRACE(std::to_string(c.channels) + " channels, " + std::to_string(lines) + " lines");
      const std::vector<float> got = single_gradients(gradient(patch_of(c, lines), x, dy));
      const std::size_t d = got.size() / kCapacity;
      for (std::size_t e = 0; e < kCapacity; ++e) {
        const auto [want, sizes] = in_double(most, x, dy, static_cast<int>(e));
        for (std::size_t i = 0; i < d; ++i)
          if (e >= kLive)
            ASSERT_EQ(got[e * d + i], kLoud);
          else
            expect_near(got[e * d + i], want[i], sizes[i], static_cast<int>(i));
      }
      if (lines * most.dy.width % kPatchStep != 0) continue;
      if (whole_steps.empty()) whole_steps = bits_of(got);
      EXPECT_EQ(bits_of(got), whole_steps);
    }
  }
}

/// The norm is that of the gradient that is added (see WeightGradientSum).
TEST_F(CudaPatch, NormsAreThoseOfTheGradients) {
  for (const PatchCase& c : kPatchCases) {
    const WeightGradient g = gradient(patch_of(c), true);
    const std::vector<float> gradients = single_gradients(g);
    const std::vector<float> parts = norm_parts(g);
    const std::size_t d = gradients.size() / kCapacity;
    for (std::size_t e = 0; e < kCapacity; ++e) {
      double square = 0.0;
      for (std::size_t i = e * d; i < (e + 1) * d; ++i)
        square += static_cast<double>(gradients[i]) * gradients[i];
      const double got = square_of(parts, e);
      if (e == 1)
        EXPECT_TRUE(std::isnan(got));
      else if (e >= kLive)
        EXPECT_EQ(parts[e], kLoud);
      else
        EXPECT_TRUE(std::abs(got - square) <= 1e-5 * square) << got << ", added " << square;
    }
  }
}

/// A sum is exactly that of each example's own numbers, rounded one by one, however many blocks
/// share the examples. An example that is skipped adds nothing.
TEST_F(CudaPatch, SumsAreExactForAnyNumberOfStripes) {
  const std::vector<float> factors{0.3f, 0.0f, 0.7f, 1.0f, kLoud};
  constexpr float kInverseGrid = 0x1p14f;  // the largest numbers are clamped
  bool is_clamped = false;
  for (const PatchCase& c : kPatchCases) {
    const WeightGradient g = gradient(patch_of(c), true);
    const std::vector<float> rows = single_gradients(g);
    std::vector<FixedPoint> want(rows.size() / kCapacity, 0);
    for (const std::size_t e : {0u, 2u, 3u})
      for (std::size_t i = 0; i < want.size(); ++i) {
        const double units =
            static_cast<double>(factors[e] * kInverseGrid) * rows[e * want.size() + i];
        is_clamped = is_clamped || std::abs(units) > kMaxUnits;
        want[i] +=
            static_cast<FixedPoint>(std::llrint(std::min(std::max(units, -kMaxUnits), kMaxUnits)));
      }
    for (const int stripes : {1, 2, kCapacity})
      EXPECT_EQ(clipped_sum(g, factors, kInverseGrid, stripes), want) << stripes << " stripes";
  }
  EXPECT_TRUE(is_clamped);
}

/// An example's bits depend neither on its place in the micro-batch nor on its neighbours.
TEST_F(CudaPatch, AnExampleAloneDecides) {
  for (const PatchCase& c : kPatchCases) {
    const ConvPatch p = patch_of(c);
    auto [x, dy] = numbers(p, true);
    const std::vector<std::uint32_t> before = bits_of(single_gradients(gradient(p, x, dy)));
    std::swap_ranges(x.begin(), x.begin() + p.x.size(), x.begin() + std::ptrdiff_t{3} * p.x.size());
    std::swap_ranges(dy.begin(), dy.begin() + p.dy.size(),
                     dy.begin() + std::ptrdiff_t{3} * p.dy.size());
    std::swap(sizes_[0], sizes_[3]);
    const std::vector<std::uint32_t> after = bits_of(single_gradients(gradient(p, x, dy)));
    std::swap(sizes_[0], sizes_[3]);
    const auto d = static_cast<std::ptrdiff_t>(before.size() / kCapacity);
    for (const auto& [from, to] : {std::pair{0, 3}, {3, 0}, {2, 2}})
      EXPECT_TRUE(std::equal(before.begin() + from * d, before.begin() + (from + 1) * d,
                             after.begin() + to * d))
          << from;
  }
}

/// Of fp16 operands a number may be too large. Then the example's norm is not finite, so it adds
/// nothing, and others are what they were.
TEST_F(CudaPatch, WhatFp16DoesNotHoldIsNotFinite) {
  const ConvPatch p = patch_of(kPatchCases[0]);
  auto [x, dy] = numbers(p, false);
  const std::vector<float> before = single_gradients(gradient(p, x, dy));
  x[p.x.at(3, 2, 2)] = 66'000.0f;
  dy[p.dy.size() + p.dy.at(5, 0, 1)] = sizes_[1] * 2'050;
  dy[2 * p.dy.size() + p.dy.at(5, 0, 1)] = sizes_[2] * 1'500;  // not too large
  const WeightGradient g = gradient(p, x, dy);
  const std::vector<float> parts = norm_parts(g);
  for (std::size_t e = 0; e < kLive; ++e) EXPECT_EQ(std::isfinite(square_of(parts, e)), e > 1) << e;
  const std::vector<float> after = single_gradients(g);
  const std::size_t d = after.size() / kCapacity;
  EXPECT_TRUE(std::equal(&after[3 * d], &after[3 * d] + d, &before[3 * d]));
}

/// The bound of CudaCancelling, here where x is the same under every tap and dy adds up to nothing
/// but what float32 rounds off: rounded to TF32 the sums are a thousand times as long.
TEST_F(CudaPatch, NoExampleAddsMoreThanTheClippingNorm) {
  constexpr float kClip = 1e-6f;
  const ConvPatch p = patch_of({33, 6, 10, 40, 1, 0, 1, 0});
  const std::vector<float> scale = normals(static_cast<std::size_t>(p.x.channels), 3);
  std::vector<float> x, dy;
  for (int i = 0; i < kCapacity * p.x.size(); ++i)
    x.push_back(scale[static_cast<std::size_t>(i / p.x.plane() % p.x.channels)]);
  const auto pixels = static_cast<std::size_t>(p.dy.plane());
  for (int plane = 0; plane < kCapacity * p.dy.channels; ++plane) {
    const std::vector<float> v = normals(pixels, 4 + static_cast<unsigned>(plane));
    double mean = 0.0;
    for (const float f : v) mean += f / static_cast<double>(pixels);
    for (const float f : v) dy.push_back(static_cast<float>(f - mean));
  }
  sizes_.assign(kCapacity, 1.0f);
  const WeightGradient g = gradient(p, nearest_tf32(x), nearest_tf32(dy));
  const auto factors = [&](const std::vector<float>& parts) {
    std::vector<float> of(kCapacity, 0.0f);
    float square = 0.0f;
    for (std::size_t t = 0; t < parts.size(); t += kCapacity) square += parts[t];
    clip_factors({Clipping::flat, kClip}, &square, 1, of.data());
    EXPECT_LT(of[0], 0.5f) << "not clipped";
    return of;
  };
  const auto added = [&](const std::vector<float>& by, double coarser = 1.0) {
    const auto grid = static_cast<float>(coarser * sum_grid(kClip));
    double square = 0.0;
    for (const FixedPoint v : clipped_sum(g, by, 1.0f / grid))
      square += std::pow(static_cast<double>(static_cast<long long>(v)) * grid, 2);
    return std::sqrt(square);
  };

  const auto by_tables = static_cast<std::size_t>(gradient_tiles(g.rows, g.columns));
  WeightGradient unrounded = g;
  unrounded.patch.lines = 0;
  unrounded.x.data = device(x);
  unrounded.dy.data = device(dy);
  const WeightGradientNorm in_float{unrounded,
                                    device(std::vector<float>(by_tables * kCapacity, kLoud))};
  run(kFloatKernels.norm[2], in_float);
  const double norm = added(factors(norm_parts(g)));
  EXPECT_TRUE(norm <= kClip * (1.0 + 0x1p-13)) << norm;
  EXPECT_TRUE(norm >= kClip * (1.0 - 0x1p-13)) << norm;
  EXPECT_GT(added(factors(host(in_float.parts, by_tables * kCapacity)), 1024.0), 100.0 * kClip)
      << "these examples would not tell";
}

TEST(ConvPatch, TakesWhatFits) {
  const auto lines = [](const PatchCase& c, std::size_t bytes) {
    return conv_patch(patch_of(c, 1), c.columns, bytes).lines;
  };
  constexpr std::size_t kMuch = std::size_t{1} << 20;
  EXPECT_EQ(lines({32, 16, 16, 64, 1, 1, 0, 1}, kMuch), 16) << "256 pixels";
  EXPECT_EQ(lines({32, 16, 16, 64, 1, 1, 0, 1}, kPatchCapacity), 8);
  EXPECT_EQ(lines({32, 32, 32, 64, 1, 1, 0, 1}, kMuch), 8);
  EXPECT_EQ(lines({32, 28, 28, 64, 1, 1, 0, 1}, kMuch), 7) << "whole patches";
  EXPECT_EQ(lines({32, 8, 8, 64, 1, 1, 0, 1}, 1024), 0) << "too little memory";
  EXPECT_EQ(lines({32, 3, 300, 64, 1, 1, 0, 1}, kMuch), 0) << "too many pixels";
  EXPECT_EQ(lines({16, 223, 1, 32, 1, 1, 0, 0}, std::size_t{71} * 1024), 0)
      << "one pixel in a patch: 223 is a prime number, and 223 pixels do not fit";
}

/// The eight rows that ldmatrix reads at once are chunks of 16 bytes in different banks.
TEST(ConvPatch, MatricesMeetNoBankTwice) {
  for (const int width : {8, 16, 32}) {
    const ConvPatch p = patch_of({32, width, width, 64, 1, 1, 0, 1});
    for (int t = 0; t < p.lines * width; t += 8) {
      std::set<int> x, dy;
      for (int r = t; r < t + 8; ++r) {
        x.insert((r / width * p.x.row() + r % width) % 8);
        dy.insert((r / width * p.dy.row() + r % width) % 8);
      }
      EXPECT_EQ(x.size(), 8u) << width;
      EXPECT_EQ(dy.size(), 8u) << width;
    }
  }
}

}  // namespace
}  // namespace cudp
