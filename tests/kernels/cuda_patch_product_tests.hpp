#pragma once
// Convolutions from patches of planes, against the kernels that find every number through a table:
// the same, bit for bit.
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

class CudaPatchProduct : public CudaKernel {
 protected:
  static constexpr int kCapacity = 7;
  static constexpr unsigned kLive = 6;

  /// Both ways to multiply, forward or by weights that are turned round as an input gradient's are.
  /// Example 1 holds a NaN, as does what fills up the rows of x.
  void expect_equal(const PixelCase& c, const PixelPatch& q, bool forward) {
    const Planes out{c.columns, q.height, q.width, c.out_border};
    std::vector<float> x = images(q.x, kCapacity, kNan, 1);
    const int row = q.x.row();
    for (int i = 0; i < kCapacity * q.x.size(); ++i) {
      const int y = i % q.x.plane() / row;
      const bool inside = y >= q.x.border && y < q.x.border + q.x.height && i % row >= q.x.border &&
                          i % row < q.x.border + q.x.width;
      if (!inside && i % row < q.x.width + 2 * q.x.border) x[i] = 0.0f;
    }
    x[q.x.size() + q.x.at(0, 0, 0)] = kNan;

    const int terms = kPatchTaps * c.channels;
    std::vector<std::int32_t> corners, taps, turned, pixels;
    for (int i = 0; i < q.height * q.width; ++i) {
      corners.push_back((i / q.width + q.corner) * row + i % q.width + q.corner);
      pixels.push_back(out.at(0, i / q.width, i % q.width));
    }
    for (int t = 0; t < terms; ++t) {
      taps.push_back(t / 9 * q.x.plane() + t % 9 / 3 * row + t % 3);
      turned.push_back(t / 9 * 9 * c.columns + 8 - t % 9);
    }
    const auto n = static_cast<std::int32_t>(pixels.size());
    const float* const weight = device(normals(static_cast<std::size_t>(terms) * c.columns, 2));
    const float* const bias =
        forward ? device(normals(static_cast<std::size_t>(c.columns), 3)) : nullptr;
    const auto cells = std::size_t{kCapacity} * out.size();
    const std::vector<float> untouched(cells, kLoud);

    device::Product p{};
    p.batch = batch(0, kCapacity, kLive);
    p.a = {.data = device(nearest_tf32(x)),
           .line = {device(corners), n, q.x.size(), 0},
           .term = {device(taps), 0, 0, 0},
           .along_terms = false,
           .as = Precision::tf32};
    p.b = forward ? Factor{weight, {nullptr, 0, 0, terms}, {}, true}
                  : Factor{weight, {nullptr, 0, 0, 9}, {device(turned), 0, 0, 0}, true};
    p.bias = bias;
    p.out_row = {device(pixels), n, out.size(), 0};
    p.out_column = {nullptr, 0, 0, out.plane()};
    p.rows_per_example = n;
    p.terms = terms;
    p.columns = c.columns;
    const auto packed = static_cast<std::size_t>(packed_floats(terms, c.columns));
    // Behind another weight, which is not packed.
    const PackedWeight one{.weight = {nullptr, p.b.line, p.b.term, p.b.along_terms},
                           .weight_at = 0,
                           .terms = terms,
                           .columns = c.columns,
                           .packed_at = 4,
                           .steps = AnyDivisor(patch_steps(terms))};
    const PackWeights pack{.weights = device(std::vector<PackedWeight>{one}),
                           .count = 1,
                           .max_floats = static_cast<std::int32_t>(packed),
                           .parameters = p.b.data,
                           .packed = device(std::vector<float>(packed + 4, kLoud))};
    run(pack_weights_kernel, pack);
    EXPECT_EQ(host(pack.packed, 4), std::vector<float>(4, kLoud));
    const auto kernel =
        c.columns <= 32 ? patch_product_kernel<PixelTile<32>> : patch_product_kernel<PixelTile<64>>;
    allow_shared(kernel, kPixelCapacity + 1024);  // it has static shared memory too
    const auto bits = [&](const float* at) {
      std::vector<std::uint32_t> v;
      for (const float f : host(at, cells))
        v.push_back(std::isnan(f) ? ~0u : std::bit_cast<std::uint32_t>(f));
      return v;
    };
    // As they are, and as an activation's layer beside it would have them.
    const Planes of_y{c.columns, q.height, q.width, 1 - c.out_border % 2};
    const float* const y = device(images(of_y, kCapacity, 0.0f, 5));
    std::vector<std::int32_t> y_pixels;
    y_pixels.reserve(static_cast<std::size_t>(q.height) * q.width);
    for (int i = 0; i < q.height * q.width; ++i)
      y_pixels.push_back(of_y.at(0, i / q.width, i % q.width));
    p.y_row = {device(y_pixels), n, of_y.size(), 0};
    p.y_column = {nullptr, 0, 0, of_y.plane()};
    const Epilogue epilogues[] = {
        {},
        {.kind = Epilogue::Kind::value, .function = {.kind = Activation::tanh}},
        {.kind = Epilogue::Kind::derivative, .function = {.kind = Activation::relu}, .y = y},
        {.stored_as = Precision::tf32}};
    for (const Epilogue& epilogue : epilogues) {
      p.epilogue = epilogue;
      p.out = device(untouched);
      launch(kTensorKernels.product[0], p,
             {.grid = {divide_up(kCapacity * n, kTileRows), divide_up(c.columns, 16)},
              .block = {tile_threads(16)},
              .shared_bytes = 0});
      const PatchProduct patched{.batch = p.batch,
                                 .patch = q,
                                 .x = p.a.data,
                                 .packed = pack.packed + 4,
                                 .bias = bias,
                                 .out = device(untouched),
                                 .out_planes = out,
                                 .epilogue = epilogue,
                                 .y_planes = of_y};
      run(kernel, patched);
      const std::vector<std::uint32_t> got = bits(patched.out);
      EXPECT_EQ(got, bits(p.out));
      EXPECT_EQ(got[cells - 1], std::bit_cast<std::uint32_t>(kLoud)) << "an example that is not";
    }
  }
};

TEST_F(CudaPatchProduct, IsTheProductThatTablesGive) {
  for (const PixelCase& c : kPixelCases)
    for (const bool forward : {true, false})
      for (const std::size_t bytes : {kPixelCapacity, kPixelCapacity * 4 / 5}) {
        const PixelPatch q = pixels_of(c, bytes);
        SCOPED_TRACE(std::to_string(c.channels) + " channels, " + std::to_string(q.lines) +
                     " lines of " + std::to_string(q.examples) + (forward ? ", forward" : ""));
        ASSERT_GT(q.lines, 0);
        expect_equal(c, q, forward);
      }
}

TEST(PixelPatch, TakesWhatCanBeCopiedAndFits) {
  const auto lines = [](const PixelCase& c, std::size_t bytes = kPixelCapacity) {
    const PixelPatch q = pixels_of(c, bytes);
    return std::pair{q.lines, q.lines > 0 ? q.examples : 0};
  };
  using Lines = std::pair<std::int32_t, std::int32_t>;
  EXPECT_EQ(lines({32, 32, 32, 32, 1, 0, 1}), Lines(8, 1));
  EXPECT_EQ(lines({64, 16, 16, 64, 1, 0, 1}), Lines(16, 1));
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}), Lines(8, 4));
  EXPECT_EQ(lines({64, 28, 28, 64, 1, 0, 1}), Lines(9, 1)) << "not a divisor of 28";
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}, 60000).second, 2) << "less memory, fewer examples";
  EXPECT_EQ(lines({64, 8, 8, 128, 1, 0, 1}, 40000), Lines(0, 0)) << "not even the weights";
  EXPECT_EQ(lines({64, 8, 10, 64, 0, 0, 0}), Lines(0, 0)) << "rows of 10 and no border";
  EXPECT_EQ(lines({64, 8, 8, 64, 1, -1, 1}), Lines(0, 0)) << "taps outside";
}

/// Lane 4 g + t reads term t of pixel g: what lies in one bank must be the same number.
TEST(PixelPatch, FragmentsMeetNoBankTwice) {
  for (const int width : {8, 16, 32}) {
    const PixelPatch q = pixels_of({32, width, width, 64, 1, 0, 1});
    ASSERT_GT(q.lines, 0);
    const auto conflicts = [](const std::set<int>& numbers) {
      std::set<int> banks;
      for (const int n : numbers) banks.insert(n % 32);
      return numbers.size() - banks.size();
    };
    for (int k = 0; k < kStepTerms; k += 4) {
      std::set<int> a, b;
      for (int g = 0; g < 8; ++g)
        for (int t = k; t < k + 4; ++t) {
          a.insert(t / 9 * q.x_plane + t % 9 / 3 * q.x_row + t % 3 + g);
          b.insert(g * kStepPitch + t);
        }
      EXPECT_EQ(conflicts(a), 0u) << width << ", term " << k;
      EXPECT_EQ(conflicts(b), 0u) << width << ", term " << k;
    }
  }
}

}  // namespace
}  // namespace cudp
