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
  int inputs, units;
  Precision precision;
  SequenceTileShape tile;
  void (*norm)(SequenceGradientNorm);
  void (*sum)(SequenceGradientSum);
  void (*rows)(SequenceGradientRows);
};
template <class T>
SequenceKernels sequence_kernels(const char* name, int inputs = 70, int units = 33) {
  return {name,
          inputs,
          units,
          T::kPrecision,
          {.rows = T::kRows, .columns = T::kColumns},
          sequence_gradient_norm_kernel<T>,
          sequence_gradient_sum_kernel<T>,
          sequence_gradient_rows_kernel<T>};
}

/// Texts of a layer, which has a weight of inputs with a bias, and one of the states before each
/// position and one of those after it, as recurrent layers do.
class CudaSequence : public CudaKernel, public testing::WithParamInterface<SequenceKernels> {
 protected:
  static constexpr int kLongest = 35, kCapacity = 9, kOutputs = 2;
  const int inputs_ = GetParam().inputs, units_ = GetParam().units;
  const int states_ = units_ * units_;
  const int bias_ = inputs_ * units_ + 2 * states_;
  const int parameters_ = bias_ + units_;
  const std::vector<std::int32_t> lengths_{5, 0, 16, 35, 1, 0, 17, 8, 33};
  /// Largest derivative of each text's loss by its logits.
  const std::vector<float> sizes_{16.0f,  0.5f,    1.0f,     0.25f,   0.7f,
                                  0x1p9f, 0x1p-9f, 0x1p-24f, 0x1p-40f};

  /// Numbers of each position of each text, NaN behind its end. Those of the texts with index 3 and
  /// 4 are NaN, too, if has_nan.
  std::vector<float> numbers(int width, unsigned seed, bool has_nan) const {
    std::vector<float> v = normals(std::size_t{kCapacity} * kLongest * width, seed);
    if (GetParam().precision == Precision::tf32)  // as tensor cores take them: 11 bits
      for (float& number : v) number = std::nearbyint(256 * number) / 256;
    for (int e = 0; e < kCapacity; ++e)
      for (int i = 0; i < kLongest * width; ++i)
        if (i >= lengths_[e] * width || (has_nan && (e == 3 || e == 4)))
          v[e * kLongest * width + i] = kNan;
    return v;
  }

  void make_numbers(bool has_nan) {
    x_ = numbers(inputs_, 1, has_nan);
    h_ = numbers(units_, 2, has_nan);
    dy_ = numbers(units_, 3, has_nan);
    // The gradient of a text's loss is as large as the derivatives by its logits are.
    for (int e = 0; e < kCapacity; ++e)
      for (int i = 0; i < kLongest * units_; ++i)
        dy_[e * kLongest * units_ + i] *= std::ldexp(1.0f, std::ilogb(sizes_[e]));
  }

  SequenceGradient gradient(unsigned count) {
    SequenceGradient g{.batch = batch(0, kCapacity, count),
                       .length = device(lengths_),
                       .longest = kLongest,
                       .tile = GetParam().tile,
                       .part = {},
                       .logit_gradients = device(logit_gradients()),
                       .outputs = kOutputs};
    SequencePart p{.x = device(x_),
                   .dy = device(dy_),
                   .x_example = kLongest * inputs_,
                   .x_place = inputs_,
                   .dy_example = kLongest * units_,
                   .dy_place = units_,
                   .rows = inputs_,
                   .columns = units_,
                   .weight = 0,
                   .bias = bias_};
    g.add(p);
    p.x = device(h_);
    p.x_example = kLongest * units_;
    p.x_place = p.rows = units_;
    p.bias = -1;
    for (const int shift : {-1, 1}) {
      p.x_shift = shift;
      p.weight = inputs_ * units_ + (shift < 0 ? 0 : states_);
      g.add(p);
    }
    return g;
  }

  /// The largest one, which may be negative, is of either logit.
  std::vector<float> logit_gradients() const {
    std::vector<float> d;
    for (const float size : sizes_) {
      const bool is_first = d.size() % 4 == 0;
      d.push_back(is_first ? -size : 0.25f * size);
      d.push_back(is_first ? 0.25f * size : size);
    }
    return d;
  }

  std::vector<double> in_double(int e) const {
    std::vector<double> g(static_cast<std::size_t>(parameters_));
    const auto at = [&](const std::vector<float>& v, int width, int t, int i) {
      return static_cast<double>(v[(e * kLongest + t) * width + i]);
    };
    for (int t = 0; t < lengths_[e]; ++t)
      for (int j = 0; j < units_; ++j) {
        const double dy = at(dy_, units_, t, j);
        g[bias_ + j] += dy;
        for (int i = 0; i < inputs_; ++i) g[j * inputs_ + i] += dy * at(x_, inputs_, t, i);
        for (int i = 0; i < units_; ++i) {
          double* const states = &g[inputs_ * units_ + j * units_ + i];
          if (t > 0) states[0] += dy * at(h_, units_, t - 1, i);
          if (t + 1 < lengths_[e]) states[states_] += dy * at(h_, units_, t + 1, i);
        }
      }
    return g;
  }

  std::vector<float> single_gradients(const SequenceGradient& g) {
    const std::size_t cells = std::size_t{kCapacity} * parameters_;
    const SequenceGradientRows a{g, device(std::vector<float>(cells, kLoud)), parameters_};
    run(GetParam().rows, a);
    return host(a.gradients, cells);
  }

  /// Parts of the squared norms, [tiles, kCapacity].
  std::vector<float> norm_parts(const SequenceGradient& g) {
    const auto cells = std::size_t{kCapacity} * g.tiles;
    const SequenceGradientNorm norm{g, device(std::vector<float>(cells, kLoud))};
    run(GetParam().norm, norm);
    return host(norm.parts, cells);
  }

  std::vector<float> x_, h_, dy_;
};

TEST_P(CudaSequence, GradientsAndNormsAreThoseOfTheTextAlone) {
  make_numbers(false);
  constexpr int kCount = kCapacity - 1;
  const SequenceGradient g = gradient(kCount);
  const std::vector<float> rows = single_gradients(g);
  const std::vector<float> parts = norm_parts(g);
  for (int e = 0; e < kCapacity; ++e) {
    const std::vector<double> want = in_double(e);
    double square = 0, got = 0;
    for (int i = 0; i < parameters_; ++i) {
      const float v = rows[e * parameters_ + i];
      if (e >= kCount)
        ASSERT_EQ(v, kLoud);
      else
        expect_near(v, want[i], std::abs(want[i]) + static_cast<double>(sizes_[e]) * lengths_[e],
                    i);
      square += static_cast<double>(v) * v;
    }
    for (int tile = 0; tile < g.tiles; ++tile) got += parts[tile * kCapacity + e];
    if (e >= kCount)
      EXPECT_EQ(parts[e], kLoud);
    else
      expect_near(got, square, square, e);
  }
}

class CudaSequenceHalves : public CudaSequence {};

/// Of fp16 operands a number may be too large. Then the text's norm is not finite, so it adds
/// nothing, and others are what they were.
TEST_P(CudaSequenceHalves, WhatFp16DoesNotHoldIsNotFinite) {
  make_numbers(false);
  const std::vector<float> before = single_gradients(gradient(kCapacity));
  x_[2 * kLongest * inputs_ + 3] = 66'000.0f;
  dy_[std::size_t{6 * kLongest + 16} * units_] = sizes_[6] * 2'050;
  dy_[std::size_t{7} * kLongest * units_] = sizes_[7] * 1'500;  // not too large
  const SequenceGradient g = gradient(kCapacity);
  const std::vector<float> parts = norm_parts(g);
  const std::vector<float> after = single_gradients(g);
  const auto d = static_cast<std::size_t>(parameters_);
  for (std::size_t e = 0; e < kCapacity; ++e) {
    float square = 0.0f;
    for (int tile = 0; tile < g.tiles; ++tile)
      square += parts[static_cast<std::size_t>(tile) * kCapacity + e];
    EXPECT_EQ(std::isfinite(square), e != 2 && e != 6) << e;
    if (e == 2 || e == 6 || e == 7) continue;
    EXPECT_TRUE(std::equal(&after[e * d], &after[e * d] + d, &before[e * d])) << e;
  }
}

/// A sum is exactly that of each text's own numbers, rounded one by one, however many blocks share
/// the texts. Nothing of texts that are skipped is read.
TEST_P(CudaSequence, SumsAreExactForAnyNumberOfStripes) {
  make_numbers(true);
  const std::vector<float> mean = normals(static_cast<std::size_t>(parameters_), 4);
  std::vector<float> inverse(mean.size());
  for (std::size_t i = 0; i < inverse.size(); ++i)
    inverse[i] = 0.5f + 0.01f * static_cast<float>(i % 99);
  std::vector<float> factors(std::size_t{2} * kCapacity, kLoud);
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
      std::vector<FixedPoint> want(mean.size(), 7);
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
      EXPECT_EQ(is_clamped, count > 0);
      for (const int stripes : {1, 2, 4, kCapacity}) {
        const SequenceGradientSum a{.gradient = g,
                                    .factors = device_factors,
                                    .factor_stride = 2,
                                    .stripes = stripes,
                                    .sum = device(std::vector<FixedPoint>(mean.size(), 7)),
                                    .scale = scale,
                                    .transform = is_transformed ? transform : Transform{}};
        run(GetParam().sum, a);
        EXPECT_EQ(host(a.sum, mean.size()), want)
            << stripes << " stripes, " << count << " texts, transformed: " << is_transformed;
      }
    }
  }
}
const SequenceKernels kSequenceKernels[] = {
    sequence_kernels<WideSequenceTile>("wide"), sequence_kernels<ThinSequenceTile>("thin"),
    sequence_kernels<LowSequenceTile>("low"), sequence_kernels<TensorSequenceTile>("tensor"),
    // Rows of whole fours, which are read four at a time.
    sequence_kernels<TensorSequenceTile>("tensor_fours", 72, 36)};
std::string name_of_tile(const testing::TestParamInfo<SequenceKernels>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Tiles, CudaSequence, testing::ValuesIn(kSequenceKernels), name_of_tile);
INSTANTIATE_TEST_SUITE_P(Tiles, CudaSequenceHalves,
                         testing::Values(kSequenceKernels[3], kSequenceKernels[4]), name_of_tile);

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
