#pragma once
// Norms, clip factors, sums on the grid and the step's bookkeeping, against loops in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fill.cuh"
#include "kernels/common/fixed_point.cuh"
#include "kernels/contribution/clip.cuh"
#include "kernels/layers/group_norm.cuh"
#include "kernels/layers/loss.cuh"
#include "kernels/layers/pool.cuh"
#include "kernels/products/tiled_product.cuh"
#include "kernels/step/step_cursor.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp {
namespace {

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
  const std::vector<float> x = normals(kCapacity * kInputs, 1);
  const std::vector<float> dy = normals(kCapacity * kOutputs, 2);
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
  std::vector<float> parts = normals(kCapacity * kParts, 1);
  for (float& p : parts) p = p * p;
  parts[2 * kCapacity + 4] = INFINITY;
  parts[5] = kNan;
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    device::Clip a{};
    a.batch = batch(0, kCapacity, 8);
    a.clip = {kind, 0.8f, 0.05f};
    a.parts = device(parts);
    a.group_parts = device(std::vector<std::int32_t>{0, 2, 3});
    a.groups = kGroups;
    a.squared_norms = device(std::vector<float>(kCapacity * kGroups, kLoud));
    a.factors = device(std::vector<float>(kCapacity * kGroups, kLoud));
    run(clip_kernel, a);
    const std::vector<float> squares = host(a.squared_norms, kCapacity * kGroups);
    const std::vector<float> factors = host(a.factors, kCapacity * kGroups);
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
    EXPECT_EQ(factors[8 * kGroups], kLoud);
  }
}

TEST_F(CudaKernel, RowsAreSummedOnTheGrid) {
  constexpr int kCapacity = 70, kColumns = 5;
  std::vector<float> rows = normals(kCapacity * kColumns, 1);
  std::vector<float> factors(kCapacity, 0.5f);
  factors[33] = 0.0f;
  rows[33 * kColumns] = kNan;
  const WeightedRows a{batch(0, kCapacity, 66),
                       device(rows),
                       kColumns,
                       device(factors),
                       1,
                       device(std::vector<FixedPoint>(kColumns, 0)),
                       0x1p20f};
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
                       0x1p20f};
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

TEST_F(CudaKernel, FillsRowsAndNoMore) {
  const std::vector<float> row = normals(3, 1);
  const FillRows fill{device(row), 3, 4, device(std::vector<float>(13, kLoud))};
  run(fill_rows_kernel, fill);
  const std::vector<float> filled = host(fill.to, 13);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(filled[i], row[i % 3]);
  EXPECT_EQ(filled[12], kLoud);
}

TEST_F(CudaKernel, TalliesInDouble) {
  constexpr int kCapacity = 300;
  std::vector<float> loss = normals(kCapacity, 1);
  std::vector<float> squares(2 * kCapacity, 4.5f);
  std::vector<float> factors(2 * kCapacity, 1.0f);
  factors[2 * 7] = 0.9f;
  squares[2 * 9] = INFINITY;
  loss[9] = kNan;
  TallyBatch a{};
  a.batch = batch(0, kCapacity, 299);
  a.loss = device(loss);
  a.squared_norms = device(squares);
  a.factors = device(factors);
  a.groups = 2;
  a.total = device(std::vector<Tally>{{1.0, 2.0, 3, 4, 5}});
  run(tally_kernel, a);
  const Tally got = host(a.total, 1)[0];
  double want = 1.0;
  for (int e = 0; e < 299; ++e) want += e == 9 ? 0.0 : loss[e];
  expect_near(got.loss, want, 1e-3, 0);
  expect_near(got.norm, 2.0 + 298 * 3.0, 1e-3, 0);
  EXPECT_EQ(got.examples, 3u + 299);
  EXPECT_EQ(got.clipped, 4u + 1);
  EXPECT_EQ(got.non_finite, 5u + 1);
}

TEST_F(CudaKernel, TheCursorWalksTheSteps) {
  std::vector<StepScalars> list(3);
  for (int i = 0; i < 3; ++i) list[i].learning_rate = static_cast<float>(i + 1);
  const BeginStep begin{device(std::vector<StepCursor>{{1000, 0, 0, 0, {}}}), device(list)};
  for (unsigned i = 0; i < 3; ++i) {
    run(begin_step_kernel, begin);
    const StepCursor c = host(begin.cursor, 1)[0];
    EXPECT_EQ(c.step, 1000u + i);
    EXPECT_EQ(c.index, i + 1);
    EXPECT_EQ(c.scalars.learning_rate, static_cast<float>(i + 1));
  }
  for (const auto& [count, failed] : {std::pair{5u, 0u}, {6u, 1u}, {5u, 1u}}) {  // it stays
    run(watch_batch_kernel, WatchBatch{begin.cursor, device(std::vector<std::uint32_t>{count}), 5});
    EXPECT_EQ(host(begin.cursor, 1)[0].failed, failed);
  }
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
