#include "runtime/device/scatter.hpp"

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/device/scatter_tables.hpp"
#include "runtime/features/normalise.hpp"
#include "tests/support/reference/scatter.hpp"
#include "tests/support/scatter_images.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

const WorkDone kSilent = [](double) {};

std::vector<SimdLevel> levels_here() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel l : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512})
    if (l <= best_simd_level()) levels.push_back(l);
  return levels;
}

/// `planes` planes of the images at one SIMD level, with loud numbers wherever nobody may read.
std::vector<float> scatter_at(SimdLevel level, const Dataset& d, int planes) {
  const ScatterBank bank(d.shape.height, d.shape.width);
  const CpuKernels& k = cpu_kernels(level);
  AlignedVector<float> work(scatter_work(bank.tables()) * static_cast<std::size_t>(k.lanes));
  for (std::size_t i = 0; i < work.size(); ++i) work[i] = NAN;
  const auto n = static_cast<std::size_t>(planes) * kScatterChannels *
                 static_cast<std::size_t>(bank.tables().out_pixels());
  std::vector<float> out(n + 1, 1e30f);
  k.scatter({&bank.tables(), d.is_bytes() ? d.bytes.data() : nullptr,
             d.is_bytes() ? nullptr : d.floats.data(), d.scale, d.shift, planes, out.data(),
             work.data()});
  EXPECT_EQ(out[n], 1e30f) << "written past the end";
  out.pop_back();
  return out;
}

TEST(Scatter, HasKymatiosValues) {
  std::ifstream file(golden_file("scattering.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 4u);
  for (const auto& c : golden["cases"]) {
    const Dataset d = scatter_images(c["colours"], c["height"], c["width"]);
    const std::vector<float> got = scatter_on_cpu(d, 1, kSilent);
    const std::size_t every = c["every"];
    ASSERT_EQ(c["values"].size(), (got.size() + every - 1) / every);
    for (std::size_t i = 0; i < c["values"].size(); ++i) {
      const double want = c["values"][i];
      EXPECT_TRUE(std::abs(got[i * every] - want) <= 2e-6)
          << i << ": " << got[i * every] << ", " << want;
    }
  }
}

TEST(Scatter, AgreesWithSumsOverPixelsAtEveryLevel) {
  // Sides with and without a remainder; 21 and 24 bring the radix 7, 37 the radix 11.
  for (const Shape& s : {Shape{1, 4, 4}, Shape{2, 9, 12}, Shape{1, 21, 7}, Shape{1, 5, 37}}) {
    const Dataset bytes = scatter_images(s.channels, s.height, s.width);
    const ReferenceScatter reference(s.height, s.width);
    const std::vector<double> want = reference(bytes, 0);
    for (const SimdLevel level : levels_here())
      for (const Dataset& d : {bytes, as_floats(bytes)}) {
        const std::vector<float> got = scatter_at(level, d, s.channels);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i)
          EXPECT_TRUE(std::abs(got[i] - want[i]) <= 2e-6)
              << simd_name(level) << " " << s.height << "x" << s.width << " at " << i << ": "
              << got[i] << ", " << want[i];
      }
  }
}

TEST(Scatter, APlaneDoesNotDependOnItsNeighboursOrOnThreads) {
  Dataset d = scatter_images(3, 10, 13);
  const std::vector<float> all = scatter_on_cpu(d, 1, kSilent);
  for (const int threads : {2, 5}) EXPECT_EQ(scatter_on_cpu(d, threads, kSilent), all);
  for (const SimdLevel level : levels_here()) {
    const int lanes = cpu_kernels(level).lanes;
    const std::vector<float> one = scatter_at(level, d, 1);
    const std::vector<float> some = scatter_at(level, d, std::min(lanes, 9));
    EXPECT_TRUE(std::equal(one.begin(), one.end(), some.begin())) << simd_name(level);
  }
  // An image that is not finite stays alone with it.
  Dataset broken = as_floats(d);
  const std::size_t image = broken.floats.size() / 3;
  broken.floats[image + 5] = NAN;
  const std::vector<float> got = scatter_on_cpu(broken, 1, kSilent);
  const std::vector<float> sound = scatter_on_cpu(as_floats(d), 1, kSilent);
  const std::size_t plane = got.size() / 9;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (i / plane != 3) {
      EXPECT_EQ(got[i], sound[i]) << i;
    }
}

TEST(Scatter, ShapesEmptySetsAndProgress) {
  EXPECT_EQ(scattered_shape({1, 28, 28}), (Shape{81, 7, 7}));
  EXPECT_EQ(scattered_shape({3, 32, 32}), (Shape{243, 8, 8}));
  EXPECT_EQ(scattered_shape({1, 31, 5}), (Shape{81, 7, 1}));
  EXPECT_THROW(ScatterBank(3, 28), std::invalid_argument);
  Dataset none;
  none.shape = {1, 28, 28};
  EXPECT_TRUE(scatter_on_cpu(none, 2, kSilent).empty());
  double last = 0.0;
  scatter_on_cpu(scatter_images(1, 8, 8), 1, [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  });
  EXPECT_EQ(last, 1.0);
}

TEST(Scatter, FourierPlansMultiplyToTheirLength) {
  for (int n = 1; n <= 300; ++n) {
    const FourierTables tables(n);
    const FourierPlan& plan = tables.plan();
    int product = 1;
    for (int i = 0; i < plan.stages; ++i) {
      product *= plan.radix[i];
      EXPECT_GE(plan.radix[i], 2);
      const bool has_butterfly = plan.radix[i] <= 6 || plan.radix[i] == 8;
      EXPECT_EQ(plan.roots[i] == nullptr, has_butterfly) << n;
    }
    EXPECT_EQ(product, n);
  }
}

TEST(FeatureNorm, GivesEachGroupOfEachExampleMeanZeroAndVarianceOne) {
  const Shape shape{6, 2, 3};
  std::vector<float> v(static_cast<std::size_t>(3 * shape.size()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(i * i % 17) * (i < 36 ? 1.0f : 100.0f);
  for (std::size_t i = 60; i < 72; ++i) v[i] = 5.0f;  // a group without variance
  const std::vector<float> before = v;
  normalise_groups(v, shape, 3, 2);
  const std::size_t size = 12;
  for (std::size_t g = 0; g < 9; ++g) {
    double mean = 0.0;
    for (std::size_t i = 0; i < size; ++i) mean += before[g * size + i] / 12.0;
    double variance = 0.0;
    for (std::size_t i = 0; i < size; ++i)
      variance += std::pow(before[g * size + i] - mean, 2) / 12.0;
    for (std::size_t i = 0; i < size; ++i) {
      const double want = (before[g * size + i] - mean) / std::sqrt(variance + 1e-5);
      EXPECT_TRUE(std::abs(v[g * size + i] - want) <= 1e-6) << g << ", " << i;
    }
  }
  EXPECT_THROW(normalise_groups(v, shape, 4, 1), std::invalid_argument);
  EXPECT_THROW(normalise_groups(v, shape, 0, 1), std::invalid_argument);
  std::vector<float> none;
  EXPECT_NO_THROW(normalise_groups(none, shape, 3, 1));
}

}  // namespace
}  // namespace cudp
