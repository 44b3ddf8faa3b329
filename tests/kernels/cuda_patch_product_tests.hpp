#pragma once
// Convolutions from patches of planes.
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

struct PixelCase {
  int channels, height, width, columns, pad;
  int more_border;  // of x, than the padding asks for
  int out_border;
};
constexpr PixelCase kPixelCases[] = {{16, 8, 8, 40, 1, 0, 1},
                                     {20, 28, 28, 17, 1, 1, 0},
                                     {35, 4, 4, 70, 1, 0, 1},
                                     {9, 11, 34, 64, 0, 1, 2},
                                     {8, 3, 126, 29, 1, 0, 0}};
constexpr std::size_t kPixelCapacity = std::size_t{71} * 1024;

PixelPatch pixels_of(const PixelCase& c, std::size_t shared_bytes = kPixelCapacity) {
  return pixel_patch({.x = {c.channels, c.height, c.width, c.pad + c.more_border},
                      .height = c.height + 2 * c.pad - 2,
                      .width = c.width + 2 * c.pad - 2,
                      .corner = c.more_border},
                     c.columns, shared_bytes);
}

/// out(i, j) without an epilogue, and the sum of its terms' absolute values.
struct OutputInDouble {
  double sum, size;
};

class CudaPatchProduct : public CudaKernel {
 protected:
  static constexpr int kCapacity = 7;
  static constexpr unsigned kLive = 6;

  /// Largest derivative of each example's loss by its logits. Its gradient is as large.
  const std::vector<float> sizes_{0x1p9f, 0.5f, 0x1p-24f, 1.0f, 16.0f, 0x1p-20f, 1.0f};

  /// Numbers that fp16 holds, scaled as an input gradient's if !forward. Example 1 has a NaN, as
  /// has what fills up the rows of x.
  std::vector<float> numbers(const PixelPatch& q, bool forward) const {
    std::vector<float> x = nearest_tf32(images(q.x, kCapacity, kNan, 1));
    const int row = q.x.row();
    for (int i = 0; i < kCapacity * q.x.size(); ++i) {
      const int y = i % q.x.plane() / row;
      const bool inside = y >= q.x.border && y < q.x.border + q.x.height && i % row >= q.x.border &&
                          i % row < q.x.border + q.x.width;
      if (!inside && i % row < q.x.width + 2 * q.x.border) x[i] = 0.0f;
      if (!forward) x[i] *= sizes_[i / q.x.size()];
    }
    x[q.x.size() + q.x.at(0, 0, 0)] = kNan;
    return x;
  }

  static OutputInDouble in_double(const PixelPatch& q, const Planes& out,
                                  const std::vector<float>& x, const std::vector<float>& weight,
                                  const std::vector<float>& bias, int e, int j, int y, int i) {
    OutputInDouble v{0.0, 0.0};
    const auto add = [&](double term) {
      v.sum += term;
      v.size += std::abs(term);
    };
    if (!bias.empty()) add(bias[static_cast<std::size_t>(j)]);
    for (int t = 0; t < kPatchTaps * q.x.channels; ++t) {
      const int channel = t / kPatchTaps, tap = t % kPatchTaps;
      const int at =
          channel * q.x.plane() + (y + q.corner + tap / 3) * q.x.row() + i + q.corner + tap % 3;
      // Forward [columns, terms]; of an input gradient [channels, columns, taps], turned round.
      const int weight_at = !bias.empty() ? j * kPatchTaps * q.x.channels + t
                                          : (channel * out.channels + j) * kPatchTaps + 8 - tap;
      add(static_cast<double>(x[static_cast<std::size_t>(e) * q.x.size() + at]) *
          weight[static_cast<std::size_t>(weight_at)]);
    }
    return v;
  }

  std::vector<float> multiply(const PixelCase& c, const PixelPatch& q, bool forward,
                              const std::vector<float>& x, const std::vector<float>& weight,
                              const std::vector<float>& bias) {
    return multiply(c, q, forward, x, weight, bias, Epilogue(), Planes(), sizes_);
  }
  std::vector<float> multiply(const PixelCase& c, const PixelPatch& q, bool forward,
                              const std::vector<float>& x, const std::vector<float>& weight,
                              const std::vector<float>& bias, const Epilogue& epilogue,
                              const Planes& of_y, const std::vector<float>& sizes) {
    const Planes out{c.columns, q.height, q.width, c.out_border};
    const int terms = kPatchTaps * c.channels;
    std::vector<std::int32_t> turned;
    turned.reserve(static_cast<std::size_t>(terms));
    for (int t = 0; t < terms; ++t) turned.push_back(t / 9 * 9 * c.columns + 8 - t % 9);
    const auto packed = static_cast<std::size_t>(packed_floats(terms, c.columns));
    // Behind another weight, which is not packed.
    Factor of{nullptr, {nullptr, 0, 0, terms}, {}, true};
    if (!forward) of = {nullptr, {nullptr, 0, 0, 9}, {device(turned), 0, 0, 0}, true};
    PackedWeight one{};
    one.weight = of;
    one.terms = terms;
    one.columns = c.columns;
    one.packed_at = 4;
    one.steps = AnyDivisor(patch_steps(terms));
    const PackWeights pack{.weights = device(std::vector<PackedWeight>{one}),
                           .count = 1,
                           .max_floats = static_cast<std::int32_t>(packed),
                           .parameters = device(weight),
                           .packed = device(std::vector<float>(packed + 4, kLoud))};
    run(pack_weights_kernel, pack);
    EXPECT_EQ(host(pack.packed, 4), std::vector<float>(4, kLoud));
    std::vector<float> logits;  // the largest one is the first or the second
    for (const float size : sizes) {
      const bool is_first = logits.size() % 4 == 0;
      logits.push_back(is_first ? -size : 0.25f * size);
      logits.push_back(is_first ? 0.25f * size : size);
    }
    const auto cells = std::size_t{kCapacity} * out.size();
    const PatchProduct a{.batch = batch(0, kCapacity, kLive),
                         .patch = q,
                         .x = device(x),
                         .packed = pack.packed + 4,
                         .bias = forward ? device(bias) : nullptr,
                         .out = device(std::vector<float>(cells, kLoud)),
                         .out_planes = out,
                         .epilogue = epilogue,
                         .y_planes = of_y,
                         .logit_gradients = forward ? nullptr : device(logits),
                         .outputs = forward ? 0 : 2};
    const auto kernel =
        c.columns <= 32 ? patch_product_kernel<PixelTile<32>> : patch_product_kernel<PixelTile<64>>;
    allow_shared(kernel, kPixelCapacity);
    run(kernel, a);
    return host(a.out, cells);
  }
  static std::vector<float> weights(const PixelCase& c) {
    return nearest_tf32(normals(std::size_t{kPatchTaps} * c.channels * c.columns, 2));
  }
  static std::vector<float> biases(const PixelCase& c, bool forward) {
    return forward ? normals(static_cast<std::size_t>(c.columns), 3) : std::vector<float>{};
  }
};

/// Forward, and by weights that are turned round as an input gradient's are. Operands are numbers
/// that fp16 holds, so an output's error is that of float32 sums. It has the same bits however many
/// pixels a block computes.
TEST_F(CudaPatchProduct, IsTheConvolutionOfEachExample) {
  for (const PixelCase& c : kPixelCases)
    for (const bool forward : {true, false}) {
      std::vector<std::uint32_t> before;
      for (const std::size_t bytes : {kPixelCapacity, kPixelCapacity / 2}) {
        const PixelPatch q = pixels_of(c, bytes);
        SCOPED_TRACE(std::to_string(c.channels) + " channels, " + std::to_string(q.lines) +
                     " lines of " + std::to_string(q.examples) + (forward ? ", forward" : ""));
        ASSERT_GT(q.lines, 0);
        const std::vector<float> x = numbers(q, forward);
        const std::vector<float> weight = weights(c);
        const std::vector<float> bias = biases(c, forward);
        const std::vector<float> got = multiply(c, q, forward, x, weight, bias);
        if (before.empty()) {
          before = bits_of(got);
          const PixelPatch fewer = spread(q, 1, c.columns, 1000);
          EXPECT_EQ(bits_of(multiply(c, fewer, forward, x, weight, bias)), before);
        }
        EXPECT_EQ(bits_of(got), before);
        const Planes out{c.columns, q.height, q.width, c.out_border};
        std::vector<bool> written(got.size());
        for (int e = 0; e < static_cast<int>(kLive); ++e)
          for (int j = 0; j < c.columns; ++j)
            for (int y = 0; y < q.height; ++y)
              for (int i = 0; i < q.width; ++i) {
                const auto at = static_cast<std::size_t>(e) * out.size() + out.at(j, y, i);
                written[at] = true;
                const OutputInDouble want = in_double(q, out, x, weight, bias, e, j, y, i);
                if (std::isnan(want.sum)) {
                  ASSERT_TRUE(std::isnan(got[at]));
                } else {
                  expect_near(got[at], want.sum, want.size, static_cast<int>(at));
                }
              }
        for (std::size_t i = 0; i < got.size(); ++i)
          if (!written[i]) {
            ASSERT_EQ(got[i], kLoud) << "written outside, at " << i;
          }
      }
    }
}

/// As an activation's layer beside it would have the numbers.
TEST_F(CudaPatchProduct, AppliesTheEpilogue) {
  for (const PixelCase& c : kPixelCases) {
    const PixelPatch q = pixels_of(c);
    const std::vector<float> x = numbers(q, false);
    const std::vector<float> weight = weights(c);
    const Planes out{c.columns, q.height, q.width, c.out_border};
    const Planes of_y{c.columns, q.height, q.width, 1 - c.out_border % 2};
    const std::vector<float> y = images(of_y, kCapacity, 0.0f, 5);
    const std::vector<float> plain = multiply(c, q, false, x, weight, {});
    const auto with = [&](const Epilogue& e) {
      return multiply(c, q, false, x, weight, {}, e, of_y, sizes_);
    };
    Epilogue epilogue;
    epilogue.stored_as = Precision::tf32;
    const std::vector<float> rounded = with(epilogue);
    epilogue = Epilogue();
    epilogue.kind = Epilogue::Kind::value;
    epilogue.function.kind = Activation::tanh;
    const std::vector<float> tanh = with(epilogue);
    epilogue.kind = Epilogue::Kind::derivative;
    epilogue.function.kind = Activation::relu;
    epilogue.y = device(y);
    const std::vector<float> relu = with(epilogue);
    for (int e = 0; e < static_cast<int>(kLive); ++e)
      for (int j = 0; j < c.columns; ++j)
        for (int i = 0; i < q.height * q.width; ++i) {
          const auto at =
              static_cast<std::size_t>(e) * out.size() + out.at(j, i / q.width, i % q.width);
          const float v = plain[at];
          if (std::isnan(v)) continue;
          const float of =
              y[static_cast<std::size_t>(e) * of_y.size() + of_y.at(j, i / q.width, i % q.width)];
          ASSERT_NEAR(tanh[at], std::tanh(v), 1e-6);
          ASSERT_EQ(relu[at], of > 0.0f ? v : 0.0f);
          ASSERT_EQ(rounded[at], nearest_tf32(v));
        }
  }
}

/// An example's bits depend neither on its place in the micro-batch nor on its neighbours.
TEST_F(CudaPatchProduct, AnExampleAloneDecides) {
  for (const PixelCase& c : kPixelCases)
    for (const bool forward : {true, false}) {
      const PixelPatch q = pixels_of(c);
      std::vector<float> x = numbers(q, forward);
      const auto before = bits_of(multiply(c, q, forward, x, weights(c), biases(c, forward)));
      std::vector<float> sizes = sizes_;
      std::swap_ranges(x.begin(), x.begin() + q.x.size(),
                       x.begin() + std::ptrdiff_t{3} * q.x.size());
      std::swap(sizes[0], sizes[3]);
      const auto after = bits_of(
          multiply(c, q, forward, x, weights(c), biases(c, forward), Epilogue(), Planes(), sizes));
      const auto d = static_cast<std::ptrdiff_t>(before.size() / kCapacity);
      for (const auto& [from, to] : {std::pair{0, 3}, {3, 0}, {2, 2}})
        EXPECT_TRUE(std::equal(before.begin() + from * d, before.begin() + (from + 1) * d,
                               after.begin() + to * d))
            << from;
    }
}

/// Of fp16 operands a number may be too large. Then the outputs that read it are not finite, and
/// other examples' are what they were.
TEST_F(CudaPatchProduct, WhatFp16DoesNotHoldIsNotFinite) {
  const PixelCase& c = kPixelCases[0];
  const PixelPatch q = pixels_of(c);
  for (const bool forward : {true, false}) {
    std::vector<float> x = numbers(q, forward);
    const std::vector<float> before = multiply(c, q, forward, x, weights(c), biases(c, forward));
    const Planes out{c.columns, q.height, q.width, c.out_border};
    const auto at = [&](int e) {
      return static_cast<std::size_t>(e) * out.size() + out.at(3, 4, 4);
    };
    x[q.x.at(3, 4, 4)] = forward ? 66'000.0f : sizes_[0] * 2'050;
    x[2 * q.x.size() + q.x.at(3, 4, 4)] = forward ? 65'000.0f : sizes_[2] * 1'500;
    const std::vector<float> after = multiply(c, q, forward, x, weights(c), biases(c, forward));
    EXPECT_FALSE(std::isfinite(after[at(0)]));
    EXPECT_TRUE(std::isfinite(after[at(2)]));
    const auto third = std::size_t{3} * out.size();
    EXPECT_TRUE(std::equal(&after[third], &after[third] + out.size(), &before[third]));
  }
}

TEST(PixelPatch, TakesWhatFits) {
  const auto lines = [](const PixelCase& c, std::size_t bytes = kPixelCapacity) {
    const PixelPatch q = pixels_of(c, bytes);
    return std::pair{q.lines, q.lines > 0 ? q.examples : 0};
  };
  using Lines = std::pair<std::int32_t, std::int32_t>;
  EXPECT_EQ(lines({32, 32, 32, 32, 1, 0, 1}), Lines(8, 1));
  EXPECT_EQ(lines({64, 16, 16, 64, 1, 0, 1}), Lines(16, 1));
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}), Lines(8, 4));
  EXPECT_EQ(lines({64, 28, 28, 64, 1, 0, 1}), Lines(9, 1)) << "not a divisor of 28";
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}, 30000).second, 3) << "less memory, fewer examples";
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}, 18000), Lines(0, 0)) << "not even the weights";
  EXPECT_EQ(lines({64, 8, 8, 64, 1, -1, 1}), Lines(0, 0)) << "taps outside";
}

/// A small batch is divided among more blocks.
TEST(PixelPatch, SpreadsOverTheDevice) {
  const auto spread_to = [](const PixelCase& c, int capacity) {
    const PixelPatch q = spread(pixels_of(c), capacity, c.columns, 264);
    return std::pair{q.lines, q.examples};
  };
  using Lines = std::pair<std::int32_t, std::int32_t>;
  EXPECT_EQ(spread_to({64, 8, 8, 128, 1, 0, 1}, 2612), Lines(8, 4));
  EXPECT_EQ(spread_to({64, 8, 8, 128, 1, 0, 1}, 448), Lines(8, 2));
  EXPECT_EQ(spread_to({64, 8, 8, 128, 1, 0, 1}, 10), Lines(8, 1)) << "the pixels of a warp";
  EXPECT_EQ(spread_to({64, 16, 16, 64, 1, 0, 1}, 448), Lines(16, 1));
  EXPECT_EQ(spread_to({64, 16, 16, 64, 1, 0, 1}, 160), Lines(8, 1));
  EXPECT_EQ(spread_to({64, 28, 28, 64, 1, 0, 1}, 1), Lines(2, 1));
  EXPECT_EQ(spread_to({64, 3, 200, 64, 1, 0, 1}, 1), Lines(1, 1));
}

/// The eight rows that ldmatrix reads at once are chunks of 16 bytes in different banks.
TEST(PixelPatch, MatricesMeetNoBankTwice) {
  for (const int width : {8, 16, 32}) {
    const PixelPatch q = pixels_of({32, width, width, 64, 1, 0, 1});
    for (int i = 0; i < kPatchPixels; i += 8) {
      std::set<int> x;
      for (int r = i; r < i + 8; ++r) {
        const int in_image = r % q.image.n;
        x.insert((r / q.image.n * q.x_pixels.n + in_image / width * q.x.row() + in_image % width) %
                 8);
      }
      EXPECT_EQ(x.size(), 8u) << width << ", pixel " << i;
    }
  }
}

}  // namespace
}  // namespace cudp
