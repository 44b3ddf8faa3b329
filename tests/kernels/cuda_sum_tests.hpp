#pragma once
// Norms, clip factors, sums on the grid and tallies, against loops in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.cuh"
#include "kernels/contribution/clip.cuh"
#include "kernels/contribution/norm_total.cuh"
#include "kernels/cpu_kernels.hpp"
#include "kernels/layers/group_norm.cuh"
#include "kernels/layers/pool.cuh"
#include "kernels/step/tally.cuh"
#include "tests/kernels/compiled_products.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp {
namespace {

/// Integers, so that neither blocks nor their order matter; as the CPU cuts them.
TEST_F(CudaKernel, TotalsNormsInUnits) {
  for (const std::size_t n : {1u, 16u, 257u, 20'000u})
    for (const double max_norm : {0.7, 1e-3, 1e20}) {
      const double grid = std::ldexp(1.0, std::ilogb(max_norm) - 30);
      const std::vector<float> norms = norms_to_add(n);
      std::uint64_t want = 0;
      for (const float norm : norms)
        want += static_cast<std::uint64_t>(std::fmin(static_cast<double>(norm), max_norm) / grid);
      NormTotal a{.norms = device(norms),
                  .n = static_cast<std::int64_t>(n),
                  .max_norm = max_norm,
                  .grid = grid,
                  .total = device(std::vector<unsigned long long>{0})};
      run(norm_total_kernel, a);
      EXPECT_EQ(host(a.total, 1)[0], want) << n << ", " << max_norm;
      a.total = device(std::vector<unsigned long long>{0});
      launch(norm_total_kernel, a, {.grid = {3}, .block = {64}, .shared_bytes = 0});
      EXPECT_EQ(host(a.total, 1)[0], want) << n << ", " << max_norm;
      a.grid = max_norm * 0x1p-64;
      EXPECT_THROW(validate(a), std::invalid_argument);
    }
}

TEST_F(CudaKernel, ArgumentsAreChecked) {
  device::Product p{};
  EXPECT_THROW(validate(p), std::invalid_argument);
  WeightGradientSum s{};
  EXPECT_THROW(validate(s), std::invalid_argument);
  device::Clip c{};
  EXPECT_THROW(validate(c), std::invalid_argument);
  device::Pool pool{};
  EXPECT_THROW(validate(pool), std::invalid_argument);
}

TEST_F(CudaKernel, DenseNormsByOuterProduct) {
  constexpr int kCapacity = 11, kInputs = 45, kOutputs = 3;
  const std::vector<float> x = normals(std::size_t{kCapacity} * kInputs, 1);
  const std::vector<float> dy = normals(std::size_t{kCapacity} * kOutputs, 2);
  const DenseGradientNorm a{batch(0, kCapacity, 10),
                            device(x),
                            kInputs,
                            device(dy),
                            kOutputs,
                            device(std::vector<float>(kCapacity, kLoud))};
  run(dense_gradient_norm_kernel, a);
  const std::vector<float> got = host(a.parts, kCapacity);
  EXPECT_EQ(got[10], kLoud);
  for (int e = 0; e < 10; ++e) {
    double want = 0;  // entry by entry
    for (int o = 0; o < kOutputs; ++o)
      for (int i = 0; i <= kInputs; ++i)
        want += std::pow(
            static_cast<double>(dy[e * kOutputs + o]) * (i < kInputs ? x[e * kInputs + i] : 1.0f),
            2);
    expect_near(got[e], want, want, e);
  }
}

TEST_F(CudaKernel, ClipFactorsFromParts) {
  constexpr int kCapacity = 9, kGroups = 2, kParts = 3;  // group 0 has two parts
  constexpr std::size_t kNumbers = std::size_t{kCapacity} * kGroups;
  std::vector<float> parts = normals(std::size_t{kCapacity} * kParts, 1);
  for (float& p : parts) p = p * p;
  parts[2 * kCapacity + 4] = INFINITY;
  parts[5] = kNan;
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    device::Clip a{};
    a.batch = batch(0, kCapacity, 8);
    a.clip = {kind, 0.05f};
    a.scale = device_scale(0.8f, 1.0);
    a.parts = device(parts);
    a.group_parts = device(std::vector<std::int32_t>{0, 2, 3});
    a.groups = kGroups;
    a.squared_norms = device(std::vector<float>(kNumbers, kLoud));
    a.factors = device(std::vector<float>(kNumbers, kLoud));
    run(clip_kernel, a);
    const std::vector<float> squares = host(a.squared_norms, kNumbers);
    const std::vector<float> factors = host(a.factors, kNumbers);
    for (int e = 0; e < 8; ++e) {
      const double s[2] = {static_cast<double>(parts[e]) + parts[kCapacity + e],
                           parts[2 * kCapacity + e]};
      const double total = s[0] + s[1];
      for (int g = 0; g < kGroups; ++g) {
        const float got = factors[e * kGroups + g];
        if (!std::isfinite(total)) {
          EXPECT_EQ(got, 0.0f) << "example " << e;
          continue;
        }
        expect_near(squares[e * kGroups + g], s[g], s[g] + 1e-6, e);
        const double want = kind == Clipping::flat ? std::min(1.0, 0.8 / std::sqrt(total))
                            : kind == Clipping::per_layer
                                ? std::min(1.0, 0.8 / std::sqrt(2.0 * s[g]))
                                : 0.8 / (std::sqrt(total) + 0.05);
        expect_near(got, want, want, e);
      }
    }
    EXPECT_EQ(factors[std::size_t{8} * kGroups], kLoud);
  }
}

TEST_F(CudaKernel, RowsAreSummedOnTheGrid) {
  constexpr int kCapacity = 70, kColumns = 5;
  std::vector<float> rows = normals(std::size_t{kCapacity} * kColumns, 1);
  std::vector<float> factors(kCapacity, 0.5f);
  factors[33] = 0.0f;
  rows[std::size_t{33} * kColumns] = kNan;
  const WeightedRows a{batch(0, kCapacity, 66),
                       device(rows),
                       kColumns,
                       device(factors),
                       1,
                       device(std::vector<FixedPoint>(kColumns, 0)),
                       device_scale(1.0f, 0x1p-20)};
  run(weighted_rows_kernel, a);
  const std::vector<FixedPoint> got = host(a.sum, kColumns);
  for (int c = 0; c < kColumns; ++c) {
    std::int64_t want = 0;  // every number rounded by itself
    for (int e = 0; e < 66; ++e)
      if (e != 33) want += std::llrint(0x1p19 * static_cast<double>(rows[e * kColumns + c]));
    EXPECT_EQ(static_cast<std::int64_t>(got[c]), want) << c;
  }
}

/// What no norm should let through is held to the range of 32-bit sums.
TEST_F(CudaKernel, NumbersBeyondTheUnitsSaturate) {
  const std::vector<float> rows = {0.75f, -4.0f, 4.5f, -5.0f, 3e38f, -INFINITY, INFINITY, NAN};
  const WeightedRows a{batch(0, 1, 1),
                       device(rows),
                       8,
                       device(std::vector<float>{1.0f}),
                       1,
                       device(std::vector<FixedPoint>(8, 0)),
                       device_scale(1.0f, 0x1p-20)};
  run(weighted_rows_kernel, a);
  const std::vector<FixedPoint> got = host(a.sum, 8);
  constexpr std::int64_t kMost = 1 << 22;
  const std::int64_t want[] = {786'432, -kMost, kMost, -kMost, kMost, -kMost, kMost, -kMost};
  for (int c = 0; c < 8; ++c) EXPECT_EQ(static_cast<std::int64_t>(got[c]), want[c]) << c;
}

/// Squares of dy vanish, and x makes much of them: the norm is above what it stands for.
TEST_F(CudaKernel, DenseNormsAreNeverTooSmall) {
  std::vector<float> x, dy;
  for (int e = 0; e < 40; ++e) {
    for (int i = 0; i < 3; ++i)
      x.push_back(std::ldexp(1.0f + 0.1f * static_cast<float>(i), 2 * e - 20));
    for (int o = 0; o < 2; ++o) dy.push_back(std::ldexp(1.3f, -50 - 2 * e));
  }
  const DenseGradientNorm a{batch(0, 40, 40), device(x), 3,
                            device(dy),       2,         device(std::vector<float>(40, kLoud))};
  run(dense_gradient_norm_kernel, a);
  const std::vector<float> got = host(a.parts, 40);
  for (int e = 0; e < 40; ++e) {
    double x2 = 1.0;
    double dy2 = 0.0;
    for (int i = 0; i < 3; ++i) x2 += std::pow(static_cast<double>(x[3 * e + i]), 2);
    for (int o = 0; o < 2; ++o) dy2 += std::pow(static_cast<double>(dy[2 * e + o]), 2);
    EXPECT_GE(got[e], x2 * dy2 * (1.0 - 1e-6)) << e;
    EXPECT_LE(got[e], x2 * (dy2 + 34 * 0x1p-126) * (1.0 + 1e-6)) << e;
  }
}

TEST_F(CudaKernel, TalliesInUnits) {
  constexpr int kCapacity = 300;
  std::vector<float> loss = normals(kCapacity, 1);
  std::vector<float> squares(std::size_t{2} * kCapacity, 4.5f);
  std::vector<float> factors(std::size_t{2} * kCapacity, 1.0f);
  factors[std::size_t{2} * 7] = 0.9f;
  squares[std::size_t{2} * 9] = INFINITY;
  loss[9] = kNan;
  loss[11] = 3e38f;  // counts as kMaxTallied
  TallyBatch a{};
  a.batch = batch(0, kCapacity, 299);
  a.loss = device(loss);
  a.squared_norms = device(squares);
  a.factors = device(factors);
  a.groups = 2;
  a.total = device(std::vector<Tally>{{1, 2, 3, 4, 5}});
  run(tally_kernel, a);
  const Tally got = host(a.total, 1)[0];
  long long want = 1;
  for (int e = 0; e < 299; ++e)
    if (e != 9) want += e == 11 ? 1LL << 30 : std::llrint(0x1p20 * static_cast<double>(loss[e]));
  EXPECT_EQ(got.loss, want);
  EXPECT_EQ(got.norm, 2 + 298 * (3LL << 20));
  EXPECT_EQ(got.examples, 3u + 299);
  EXPECT_EQ(got.clipped, 4u + 1);
  EXPECT_EQ(got.non_finite, 5u + 1);
}

TEST(FixedPoint, GridFollowsTheNorm) {
  for (const double norm : {1e-30, 1e-6, 0.3, 1.0, 1.999, 2.0, 1e4, 1e30}) {
    const double grid = sum_grid(norm);
    EXPECT_GE(norm / grid, kMinUnits) << norm;
    EXPECT_LT(norm / grid, kMaxUnits / 2) << norm;
    EXPECT_EQ(std::ldexp(1.0, std::ilogb(grid)), grid);
    EXPECT_TRUE(std::isnormal(static_cast<float>(1.0 / grid))) << norm;
  }
}

}  // namespace
}  // namespace cudp
