#pragma once
// Products and weight gradients from patches, with shared memory filled between patches and steps
// (half_fill.hpp). Under the emulator alone.
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/cuda_patch_gradient_tests.hpp"
#include "tests/kernels/cuda_patch_product_tests.hpp"
#include "tests/kernels/half_fill.hpp"

namespace cudp {
namespace {

/// Makes the numbers of all examples but 0 and 2 hostile, borders included.
void spoil_others(std::vector<float>& v, int each) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t e = i / static_cast<std::size_t>(each);
    if (e != 0 && e != 2) v[i] = hostile(i);
  }
}

class FilledPatch : public CudaPatch {};

TEST_F(FilledPatch, NoBitDependsOnWhatMemoryHolds) {
  for (const PatchCase& c : kPatchCases) {
    // Several patches an example, if its rows can be divided.
    const ConvPatch whole = patch_of(c);
    const bool halves = whole.lines % 2 == 0 && whole.lines / 2 * whole.dy.row() >= 2;
    const ConvPatch p = halves ? patch_of(c, whole.lines / 2) : whole;
    auto [x, dy] = numbers(p, false);
    const auto all = [&](int byte) {
      const auto fill = [&](int columns) {
        if (byte >= 0)
          simt::set_at_barrier(fill_patch(p, columns, static_cast<unsigned char>(byte)));
      };
      const WeightGradient g = gradient(p, x, dy);
      fill(kPatchSumColumns);
      const std::vector<std::uint32_t> rows = bits_of(single_gradients(g));
      const auto sum = clipped_sum(g, {0.3f, 0.0f, 0.7f, 0.0f, 0.0f}, 0x1p14f);
      fill(patch_columns(g.columns));
      const std::vector<std::uint32_t> parts = bits_of(norm_parts(g));
      std::vector<std::uint32_t> bits;
      const std::size_t d = rows.size() / kCapacity;
      for (const std::size_t e : {0u, 2u}) {
        bits.insert(bits.end(), &rows[e * d], &rows[e * d] + d);
        for (std::size_t i = e; i < parts.size(); i += kCapacity) bits.push_back(parts[i]);
      }
      return std::pair{bits, sum};
    };
    const SharedFill zeros(0);
    const auto first = all(-1);
    spoil_others(x, p.x.size());
    spoil_others(dy, p.dy.size());
    for (const unsigned char byte : kFills) {
      simt::set_first_byte(byte);
      EXPECT_TRUE(all(byte) == first) << c.channels << " channels, " << int{byte};
    }
  }
}

class FilledPatchProduct : public CudaPatchProduct {};

TEST_F(FilledPatchProduct, NoBitDependsOnWhatMemoryHolds) {
  for (const PixelCase& c : kPixelCases)
    for (const bool forward : {true, false}) {
      const PixelPatch q = pixels_of(c);
      std::vector<float> x = numbers(q, forward);
      const auto all = [&] {
        const auto bits = bits_of(multiply(c, q, forward, x, weights(c), biases(c, forward)));
        const auto d = static_cast<std::ptrdiff_t>(bits.size() / kCapacity);
        std::vector<std::uint32_t> kept(bits.begin(), bits.begin() + d);
        kept.insert(kept.end(), bits.begin() + 2 * d, bits.begin() + 3 * d);
        return kept;
      };
      const SharedFill zeros(0);
      const auto first = all();
      spoil_others(x, q.x.size());
      for (const unsigned char byte : kFills) {
        simt::set_first_byte(byte);
        simt::set_at_barrier(fill_pixels(q, c.columns, byte));
        EXPECT_TRUE(all() == first) << c.channels << " channels, " << int{byte};
      }
    }
}

}  // namespace
}  // namespace cudp
