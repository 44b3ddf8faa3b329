#pragma once
// Weight gradients from patches of planes, against the kernels that find every number through a
// table: the same, bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
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
constexpr PatchCase kPatchCases[] = {{32, 8, 8, 40, 1, 1, 0, 1},
                                     {35, 4, 4, 70, 1, 1, 1, 1},
                                     {16, 16, 16, 32, 2, 1, 0, 2},
                                     {33, 6, 10, 5, 1, 0, 1, 0},
                                     {64, 2, 32, 32, 1, 1, 0, 1}};
constexpr std::size_t kPatchCapacity = std::size_t{47} * 1024;

/// The planes of a case, and where the patches of `lines` lines lie in them; 0 for the most.
ConvPatch patch_of(const PatchCase& c, int lines = 0) {
  const auto out = [&](int n) { return (n + 2 * c.pad - 3) / c.stride + 1; };
  const ConvPatch p{.x = {c.channels, c.height, c.width, c.pad + c.more_border},
                    .dy = {c.columns, out(c.height), out(c.width), c.dy_border},
                    .stride = c.stride,
                    .corner = c.more_border};
  return lines > 0 ? with_lines(p, lines, c.columns) : conv_patch(p, c.columns, kPatchCapacity);
}

class CudaPatch : public CudaKernel {
 protected:
  static constexpr int kCapacity = 5;
  static constexpr unsigned kLive = 4;

  /// Planes rounded as they are stored. Example 1 holds a NaN; borders of dy are NaN, and so is
  /// what fills up the rows of x.
  WeightGradient gradient(const ConvPatch& p) {
    std::vector<float> x = images(p.x, kCapacity, kNan, 1);
    std::vector<float> dy = images(p.dy, kCapacity, kNan, 2);
    const int row = p.x.row();
    for (int i = 0; i < kCapacity * p.x.size(); ++i) {
      const int y = i % p.x.plane() / row;
      const bool padding = y < p.x.border || y >= p.x.border + p.x.height || i % row < p.x.border ||
                           i % row >= p.x.border + p.x.width;
      if (padding && i % row < p.x.width + 2 * p.x.border) x[i] = 0.0f;
    }
    dy[p.dy.size() + p.dy.at(0, 0, 0)] = kNan;
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
    g.x = {.data = device(nearest_tf32(x)),
           .line = {device(taps), 0, 0, 0},
           .term = {device(corners), n, p.x.size(), 0},
           .along_terms = true,
           .as = Precision::tf32};
    g.dy = {.data = device(nearest_tf32(dy)),
            .line = {nullptr, 0, 0, p.dy.plane()},
            .term = {device(pixels), n, p.dy.size(), 0},
            .along_terms = true,
            .as = Precision::tf32};
    g.rows = kPatchTaps * p.x.channels;
    g.columns = p.dy.channels;
    g.terms_per_example = n;
    return g;
  }

  void sum(const WeightGradientSum& a) {
    const WeightGradient& g = a.gradient;
    if (g.patch.lines == 0)
      run(kTensorKernels.sum[tile_columns(g.columns) / 32], a);
    else if (g.columns <= 32)
      run(patch_gradient_sum_kernel<PatchTile<32, 32>>, a);
    else
      run(patch_gradient_sum_kernel<PatchTile<64, 32>>, a);
  }
  std::vector<std::uint32_t> single_gradients(const WeightGradient& g) {
    const auto d = static_cast<std::size_t>(g.columns) * (g.rows + 1);
    const WeightGradientRows a{g, device(std::vector<float>(d * kCapacity, kLoud)),
                               static_cast<std::int64_t>(d)};
    if (g.patch.lines == 0)
      run(kTensorKernels.rows[tile_columns(g.columns) / 32], a);
    else if (g.columns <= 32)
      run(patch_gradient_rows_kernel<PatchTile<32, 32>>, a);
    else
      run(patch_gradient_rows_kernel<PatchTile<64, 32>>, a);
    std::vector<std::uint32_t> bits;
    for (const float v : host(a.gradients, d * kCapacity))
      bits.push_back(std::isnan(v) ? ~0u : std::bit_cast<std::uint32_t>(v));
    return bits;
  }
  std::vector<FixedPoint> clipped_sum(const WeightGradient& g, const std::vector<float>& factors,
                                      float inverse_grid) {
    const auto d = static_cast<std::size_t>(g.columns) * (g.rows + 1);
    WeightGradientSum a{};
    a.gradient = g;
    a.factors = device(factors);
    a.factor_stride = 1;
    a.examples_per_block = kPatchExamples;
    a.sum = device(std::vector<FixedPoint>(d, 0));
    a.scale = device_scale(1.0f, 1.0 / static_cast<double>(inverse_grid));
    sum(a);
    return host(a.sum, d);
  }
  std::vector<FixedPoint> clipped_sum(const WeightGradient& g) {
    return clipped_sum(g, {0.3f, 0.0f, 0.7f, 1.0f, kLoud}, 0x1p14f);  // numbers below 2^22
  }
  std::vector<float> norm_parts(const WeightGradient& g, std::size_t tiles) {
    const WeightGradientNorm a{g, device(std::vector<float>(tiles * kCapacity, kLoud))};
    if (g.columns <= 32)
      run(patch_gradient_norm_kernel<PatchTile<32, 32>>, a);
    else
      run(patch_gradient_norm_kernel<PatchTile<64, 64>>, a);
    return host(a.parts, tiles * kCapacity);
  }
};

TEST_F(CudaPatch, AreTheGradientsThatTablesGive) {
  for (const PatchCase& c : kPatchCases) {
    WeightGradient g = gradient(patch_of(c));
    const auto want = single_gradients(g);
    const auto want_sum = clipped_sum(g);
    const int most = patch_of(c).lines;
    ASSERT_GT(most, 0);
    for (int lines = 1; lines <= most; ++lines) {
      const Planes& dy = patch_of(c).dy;
      if (dy.height % lines != 0 || lines * dy.width % 8 != 0) continue;
      SCOPED_TRACE(std::to_string(c.channels) + " channels, " + std::to_string(lines) + " lines");
      g.patch = patch_of(c, lines);
      EXPECT_EQ(single_gradients(g), want);
      EXPECT_EQ(clipped_sum(g), want_sum);
    }
  }
}

/// The norm is that of the gradient that is added (see WeightGradientSum).
TEST_F(CudaPatch, NormsAreThoseOfTheGradients) {
  for (const PatchCase& c : kPatchCases) {
    WeightGradient g = gradient(patch_of(c));
    g.patch = patch_of(c);
    ASSERT_GT(g.patch.lines, 0);
    const auto gradients = single_gradients(g);
    const auto tiles = static_cast<std::size_t>(gradient_tiles(g.rows, g.columns, true));
    const std::vector<float> parts = norm_parts(g, tiles);
    const std::size_t d = gradients.size() / kCapacity;
    for (std::size_t e = 0; e < kCapacity; ++e) {
      double got = 0.0;
      for (std::size_t t = 0; t < tiles; ++t) got += parts[t * kCapacity + e];
      double square = 0.0;
      for (std::size_t i = e * d; i < (e + 1) * d; ++i) {
        const double v = std::bit_cast<float>(gradients[i]);
        square += v * v;
      }
      if (e == 1)
        EXPECT_TRUE(std::isnan(got));
      else if (e >= kLive)
        EXPECT_EQ(parts[e], kLoud);
      else
        EXPECT_TRUE(std::abs(got - square) <= 1e-5 * square) << got << ", added " << square;
    }
  }
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
  WeightGradient g = gradient(p, x, dy);
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
  unrounded.x.data = device(x);
  unrounded.dy.data = device(dy);
  const WeightGradientNorm in_float{unrounded,
                                    device(std::vector<float>(by_tables * kCapacity, kLoud))};
  run(kFloatKernels.norm[2], in_float);
  g.patch = p;
  ASSERT_GT(p.lines, 0);
  const auto tiles = static_cast<std::size_t>(gradient_tiles(g.rows, g.columns, true));
  const double norm = added(factors(norm_parts(g, tiles)));
  EXPECT_TRUE(norm <= kClip * (1.0 + 0x1p-13)) << norm;
  EXPECT_TRUE(norm >= kClip * (1.0 - 0x1p-13)) << norm;
  EXPECT_GT(added(factors(host(in_float.parts, by_tables * kCapacity)), 1024.0), 100.0 * kClip)
      << "these examples would not tell";
}

TEST(ConvPatch, TakesWhatCanBeCopiedAndFits) {
  const auto lines = [](const PatchCase& c, std::size_t bytes) {
    ConvPatch p = patch_of(c);
    p.lines = 0;
    return conv_patch(p, c.columns, bytes).lines;
  };
  constexpr std::size_t kMuch = std::size_t{1} << 20;
  EXPECT_EQ(lines({32, 8, 8, 64, 1, 1, 0, 1}, kMuch), 8) << "64 terms";
  EXPECT_EQ(lines({32, 8, 8, 64, 1, 1, 0, 1}, kPatchCapacity), 2);
  EXPECT_EQ(lines({32, 8, 8, 64, 1, 1, 0, 1}, 1024), 0) << "too little memory";
  EXPECT_EQ(lines({32, 8, 10, 64, 1, 0, 0, 1}, kMuch), 0) << "rows of 10 and no border";
  EXPECT_EQ(lines({32, 9, 9, 64, 1, 1, 0, 1}, kMuch), 0) << "no whole steps";
  EXPECT_EQ(lines({32, 3, 128, 64, 1, 1, 0, 1}, kMuch), 0) << "too many terms";
}

/// Lane 4 g + t reads (g, t): what lies in one bank must be the same number.
TEST(ConvPatch, FragmentsMeetNoBankTwice) {
  for (const int width : {8, 16, 32}) {
    const ConvPatch p = patch_of({32, width, width, 64, 1, 1, 0, 1});
    const auto conflicts = [](const std::vector<int>& places) {
      const std::set<int> numbers(places.begin(), places.end());
      std::set<int> banks;
      for (const int n : numbers) banks.insert(n % 32);
      return numbers.size() - banks.size();
    };
    for (int row = 0; row < kPatchRows; row += 8) {
      std::vector<int> a, b;
      for (int g = 0; g < 8; ++g)
        for (int t = 0; t < 4; ++t) {
          const int tap = (row + g) % kPatchTaps;
          a.push_back((row + g) / kPatchTaps * p.x_plane + tap / 3 * p.x_row + tap % 3 + t);
          b.push_back(g * p.dy_plane + t);
        }
      EXPECT_EQ(conflicts(a), 0u) << width << ", row " << row;
      EXPECT_EQ(conflicts(b), 0u) << width;
    }
  }
}

}  // namespace
}  // namespace cudp
