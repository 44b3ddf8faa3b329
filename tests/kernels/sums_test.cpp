// Sums of gradients in whole units, on the CPU: numbers that leave the range become its end.
#include "kernels/step/sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "kernels/cpu_kernels.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

class Sums : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override {
    if (!cases::has_simd_level(GetParam())) GTEST_SKIP() << "this processor lacks it";
  }
};

constexpr std::int32_t kMost = 1 << 22;
const std::vector<float> kNumbers = {0.0f,    -0.0f,  0.25f,    -0.75f,    1.0f,  0x1p21f,
                                     0x1p22f, 5e6f,   -0x1p22f, -5e6f,     1e7f,  -1e9f,
                                     3e38f,   -3e38f, INFINITY, -INFINITY, 1e-40f};

std::int32_t units(float v) {
  return static_cast<std::int32_t>(
      std::nearbyint(std::clamp(static_cast<double>(v), -1.0 * kMost, 1.0 * kMost)));
}

TEST_P(Sums, AreOfRoundedNumbersAndSaturate) {
  std::vector<float> g = kNumbers;
  g.resize(32, NAN);
  std::vector<std::int32_t> sum(32, 7);
  cpu_kernels(GetParam()).add_rounded({.units = sum.data(), .g = g.data(), .scale = 1.0f, .n = 32});
  for (std::size_t i = 0; i < 32; ++i)
    EXPECT_EQ(sum[i], 7 + (std::isnan(g[i]) ? -kMost : units(g[i]))) << g[i];
}

TEST_P(Sums, OfTransformedOuterProductsSaturate) {
  constexpr int kColumns = 16;
  std::vector<float> y(kNumbers.begin(), kNumbers.begin() + kColumns);
  const std::vector<float> mean(kColumns, 0.0f);
  const std::vector<float> inverse(kColumns, 2.0f);
  const float x = 1.0f;
  const float scale = 0.5f;
  const std::int32_t row = 0;
  const GemmStep step{0, 0};
  std::vector<std::int32_t> sum(kColumns, 0);
  cpu_kernels(GetParam())
      .add_outer({.x = &x,
                  .y = y.data(),
                  .units = sum.data(),
                  .x_row = &row,
                  .step = &step,
                  .rows = 1,
                  .terms = 1,
                  .columns = kColumns,
                  .transform = {mean.data(), inverse.data()},
                  .scale = &scale});
  for (std::size_t i = 0; i < kColumns; ++i) EXPECT_EQ(sum[i], units(y[i])) << y[i];
}

INSTANTIATE_TEST_SUITE_P(All, Sums,
                         testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512),
                         [](const auto& i) { return std::string(simd_name(i.param)); });

}  // namespace
}  // namespace cudp
