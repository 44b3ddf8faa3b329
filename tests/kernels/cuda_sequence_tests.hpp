#pragma once
// Gradients of weights that all positions of a text share: norms, sums and single gradients, by
// each size of tile.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/products/sequence_gradient.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp::inline CUDP_SIMT {

// The CUDA engine contains these kernels (runtime/device/cuda/layers.cu). They are not compiled
// again.
#define CUDP_COMPILED_SEQUENCE(T)                                                         \
  extern template __global__ void sequence_gradient_norm_kernel<T>(SequenceGradientNorm); \
  extern template __global__ void sequence_gradient_sum_kernel<T>(SequenceGradientSum);   \
  extern template __global__ void sequence_gradient_rows_kernel<T>(SequenceGradientRows)

CUDP_COMPILED_SEQUENCE(WideSequenceTile);
CUDP_COMPILED_SEQUENCE(ThinSequenceTile);
CUDP_COMPILED_SEQUENCE(LowSequenceTile);
CUDP_COMPILED_SEQUENCE(TensorSequenceTile);
#undef CUDP_COMPILED_SEQUENCE

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {
namespace {

struct SequenceKernels {
  const char* name;
  Precision precision;
  SequenceTileShape tile;
  void (*norm)(SequenceGradientNorm);
  void (*sum)(SequenceGradientSum);
  void (*rows)(SequenceGradientRows);
};
template <class T>
SequenceKernels sequence_kernels(const char* name) {
  return {name,
          T::kPrecision,
          {.rows = T::kRows, .columns = T::kColumns},
          sequence_gradient_norm_kernel<T>,
          sequence_gradient_sum_kernel<T>,
          sequence_gradient_rows_kernel<T>};
}

/// Texts of a layer of 70 inputs and 33 units, which has a weight of inputs with a bias, and one of
/// the states before each position and one of those after it, as recurrent layers do.
class CudaSequence : public CudaKernel, public testing::WithParamInterface<SequenceKernels> {
 protected:
  static constexpr int kInputs = 70, kUnits = 33, kLongest = 35, kCapacity = 9;
  static constexpr int kStates = kUnits * kUnits;
  static constexpr int kBias = kInputs * kUnits + 2 * kStates;
  static constexpr int kParameters = kBias + kUnits;
  const std::vector<std::int32_t> lengths_{5, 0, 16, 35, 1, 0, 17, 8, 33};

  /// Numbers of each position of each text, NaN behind its end. Those of the texts with index 3 and
  /// 4 are NaN, too, if has_nan.
  std::vector<float> numbers(int width, unsigned seed, bool has_nan) const {
    std::vector<float> v = normals(static_cast<std::size_t>(kCapacity * kLongest * width), seed);
    if (GetParam().precision == Precision::tf32)  // as tensor cores take them: 11 bits
      for (float& number : v) number = std::nearbyint(256 * number) / 256;
    for (int e = 0; e < kCapacity; ++e)
      for (int i = 0; i < kLongest * width; ++i)
        if (i >= lengths_[e] * width || (has_nan && (e == 3 || e == 4)))
          v[static_cast<std::size_t>(e * kLongest * width + i)] = kNan;
    return v;
  }

  void make_numbers(bool has_nan) {
    x_ = numbers(kInputs, 1, has_nan);
    h_ = numbers(kUnits, 2, has_nan);
    dy_ = numbers(kUnits, 3, has_nan);
  }

  SequenceGradient gradient(unsigned count) {
    SequenceGradient g{.batch = batch(0, kCapacity, count),
                       .length = device(lengths_),
                       .longest = kLongest,
                       .tile = GetParam().tile,
                       .part = {}};
    SequencePart p{.x = device(x_),
                   .dy = device(dy_),
                   .x_example = kLongest * kInputs,
                   .x_place = kInputs,
                   .dy_example = kLongest * kUnits,
                   .dy_place = kUnits,
                   .rows = kInputs,
                   .columns = kUnits,
                   .weight = 0,
                   .bias = kBias};
    g.add(p);
    p.x = device(h_);
    p.x_example = kLongest * kUnits;
    p.x_place = p.rows = kUnits;
    p.bias = -1;
    for (const int shift : {-1, 1}) {
      p.x_shift = shift;
      p.weight = kInputs * kUnits + (shift < 0 ? 0 : kStates);
      g.add(p);
    }
    return g;
  }

  std::vector<double> in_double(int e) const {
    std::vector<double> g(kParameters);
    const auto at = [&](const std::vector<float>& v, int width, int t, int i) {
      return static_cast<double>(v[static_cast<std::size_t>((e * kLongest + t) * width + i)]);
    };
    for (int t = 0; t < lengths_[e]; ++t)
      for (int j = 0; j < kUnits; ++j) {
        const double dy = at(dy_, kUnits, t, j);
        g[kBias + j] += dy;
        for (int i = 0; i < kInputs; ++i) g[j * kInputs + i] += dy * at(x_, kInputs, t, i);
        for (int i = 0; i < kUnits; ++i) {
          double* const states = &g[kInputs * kUnits + j * kUnits + i];
          if (t > 0) states[0] += dy * at(h_, kUnits, t - 1, i);
          if (t + 1 < lengths_[e]) states[kStates] += dy * at(h_, kUnits, t + 1, i);
        }
      }
    return g;
  }

  std::vector<float> single_gradients(const SequenceGradient& g) {
    const std::size_t cells = std::size_t{kCapacity} * kParameters;
    const SequenceGradientRows a{g, device(std::vector<float>(cells, kLoud)), kParameters};
    run(GetParam().rows, a);
    return host(a.gradients, cells);
  }

  std::vector<float> x_, h_, dy_;
};

TEST_P(CudaSequence, GradientsAndNormsAreThoseOfTheTextAlone) {
  make_numbers(false);
  constexpr int kCount = kCapacity - 1;
  const SequenceGradient g = gradient(kCount);
  const std::vector<float> rows = single_gradients(g);
  const auto cells = static_cast<std::size_t>(g.tiles * kCapacity);
  const SequenceGradientNorm norm{g, device(std::vector<float>(cells, kLoud))};
  run(GetParam().norm, norm);
  const std::vector<float> parts = host(norm.parts, cells);
  for (int e = 0; e < kCapacity; ++e) {
    const std::vector<double> want = in_double(e);
    double square = 0, got = 0;
    for (int i = 0; i < kParameters; ++i) {
      const float v = rows[static_cast<std::size_t>(e * kParameters + i)];
      if (e >= kCount)
        ASSERT_EQ(v, kLoud);
      else
        expect_near(v, want[i], std::abs(want[i]) + lengths_[e], i);
      square += static_cast<double>(v) * v;
    }
    for (int tile = 0; tile < g.tiles; ++tile)
      got += parts[static_cast<std::size_t>(tile * kCapacity + e)];
    if (e >= kCount)
      EXPECT_EQ(parts[e], kLoud);
    else
      expect_near(got, square, square, e);
  }
}

/// A sum is exactly that of each text's own numbers, rounded one by one, however many blocks share
/// the texts. Nothing of texts that are skipped is read.
TEST_P(CudaSequence, SumsAreExactForAnyNumberOfStripes) {
  make_numbers(true);
  const std::vector<float> mean = normals(kParameters, 4);
  std::vector<float> inverse(kParameters);
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] = 0.5f + 0.01f * (i % 99);
  std::vector<float> factors(2 * kCapacity, kLoud);
  for (int e = 0; e < kCapacity; ++e)
    factors[2 * e + 1] = e == 3 || e == 4 || e == 7 ? 0.0f : 0.1f + 0.07f * static_cast<float>(e);
  const float* const device_factors = device(factors) + 1;
  const Transform transform{device(mean), device(inverse)};
  constexpr float kInverseGrid = 0x1p20f;  // the largest numbers are clamped
  const SumScale* const scale = device_scale(1.0f, 1.0 / kInverseGrid);
  for (const unsigned count : {0u, 1u, 8u, 20u}) {
    const SequenceGradient g = gradient(count);
    const std::vector<float> rows = single_gradients(g);
    for (const bool is_transformed : {false, true}) {
      std::vector<FixedPoint> want(kParameters, 7);
      bool is_clamped = false;
      for (int e = 0; e < std::min<int>(kCapacity, static_cast<int>(count)); ++e) {
        if (factors[2 * e + 1] == 0.0f) continue;
        for (std::size_t i = 0; i < want.size(); ++i) {
          float v = rows[e * want.size() + i];
          if (is_transformed) v = (v - mean[i]) * inverse[i];
          const double units = static_cast<double>(factors[2 * e + 1] * kInverseGrid) * v;
          is_clamped = is_clamped || std::abs(units) > kMaxUnits;
          want[i] += static_cast<FixedPoint>(
              std::llrint(std::min(std::max(units, -kMaxUnits), kMaxUnits)));
        }
      }
      EXPECT_EQ(is_clamped, count >= 8);
      for (const int stripes : {1, 2, 4, kCapacity}) {
        const SequenceGradientSum a{.gradient = g,
                                    .factors = device_factors,
                                    .factor_stride = 2,
                                    .stripes = stripes,
                                    .sum = device(std::vector<FixedPoint>(kParameters, 7)),
                                    .scale = scale,
                                    .transform = is_transformed ? transform : Transform{}};
        run(GetParam().sum, a);
        EXPECT_EQ(host(a.sum, kParameters), want)
            << stripes << " stripes, " << count << " texts, transformed: " << is_transformed;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Tiles, CudaSequence,
                         testing::Values(sequence_kernels<WideSequenceTile>("wide"),
                                         sequence_kernels<ThinSequenceTile>("thin"),
                                         sequence_kernels<LowSequenceTile>("low"),
                                         sequence_kernels<TensorSequenceTile>("tensor")),
                         [](const auto& info) { return std::string(info.param.name); });

class CudaSequences : public CudaKernel {};

/// Each text adds the largest number that one may add, and 512 of them are more than 32 bits hold.
TEST_F(CudaSequences, SumsOfManyTextsDoNotOverflow) {
  constexpr int kTexts = 530;
  const auto kernels = sequence_kernels<ThinSequenceTile>("");
  for (const float sign : {1.0f, -1.0f}) {
    SequenceGradient g{.batch = batch(0, kTexts, kTexts),
                       .length = device(std::vector<std::int32_t>(kTexts, 1)),
                       .longest = 1,
                       .tile = kernels.tile,
                       .part = {}};
    g.add({.x = device(std::vector<float>(kTexts, 1.0f)),
           .dy = device(std::vector<float>(kTexts, sign * 1e6f)),
           .x_example = 1,
           .x_place = 1,
           .dy_example = 1,
           .dy_place = 1,
           .rows = 1,
           .columns = 1,
           .bias = 1});
    const SequenceGradientSum a{.gradient = g,
                                .factors = device(std::vector<float>(kTexts, 1.0f)),
                                .factor_stride = 1,
                                .stripes = 1,
                                .sum = device(std::vector<FixedPoint>(2, 0)),
                                .scale = device_scale(1.0f, 0x1p-20)};
    run(kernels.sum, a);
    const auto want = static_cast<long long>(static_cast<double>(sign) * kTexts * kMaxUnits);
    for (const FixedPoint sum : host(a.sum, 2)) EXPECT_EQ(static_cast<long long>(sum), want);
  }
}

/// As many blocks as run at once, but not more than there are texts.
TEST_F(CudaSequences, StripesFollowFromTheDevice) {
  const auto stripes = [](int tiles, int capacity, int multiprocessors) {
    SequenceGradient g{};
    g.batch.capacity = capacity;
    g.tiles = tiles;
    return sequence_stripes(g, 3, {.multiprocessors = multiprocessors});
  };
  EXPECT_EQ(stripes(28, 4831, 132), 14) << "imdb-lstm on an H100";
  EXPECT_EQ(stripes(2, 4831, 132), 198);
  EXPECT_EQ(stripes(2, 64, 132), 64);
  EXPECT_EQ(stripes(28, 64, 1), 1);
}

}  // namespace
}  // namespace cudp
