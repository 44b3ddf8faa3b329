// Engines that share a training set, each with a range of it: the state that one engine with all of
// it has, to the bit.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "runtime/data/share.hpp"
#include "runtime/device/joined_linear.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/ranked_training.hpp"
#include "tests/support/thread_ranks.hpp"

namespace cudp {
namespace {

constexpr std::size_t kExamples = 1700;  // four tiles, the last one short

/// Each model at one of the SIMD levels, in turn; where CUDP_SIMD_LEVEL asks for one (check.sh
/// ranks), at that.
class RankedEngine : public testing::TestWithParam<cases::Case> {
 protected:
  void SetUp() override {
    constexpr SimdLevel kLevels[] = {SimdLevel::avx512, SimdLevel::avx2, SimdLevel::baseline};
    const SimdLevel level = kLevels[cases::network_of(GetParam()).parameter_count % 3];
    if (std::getenv("CUDP_SIMD_LEVEL") != nullptr || !cases::has_simd_level(level)) return;
    ::setenv("CUDP_SIMD_LEVEL", std::string(simd_name(level)).c_str(), 1);
    chosen_ = true;
  }
  void TearDown() override {
    if (chosen_) ::unsetenv("CUDP_SIMD_LEVEL");
  }

 private:
  bool chosen_ = false;
};

TEST_P(RankedEngine, AnyNumberOfRanksHasTheStateOfOne) {
  const Network net = cases::network_of(GetParam());
  Dataset data = cases::examples_for(GetParam(), kExamples);
  // One row in another's range that no sum may see.
  if (!data.floats.empty()) data.floats[700 * data.floats.size() / kExamples] = 3e38f;
  const bool small = net.parameter_count < 3000;
  for (const cases::Way& way : cases::ways()) {
    const bool learns_words = net.parameters[0].name.starts_with("words");
    if (learns_words && std::holds_alternative<TransformedGradient>(way.recipe.contribution))
      continue;  // refused
    SCOPED_TRACE(way.name);
    const cases::Left whole = cases::train(make_cpu_engine, net, data, way.recipe, alone());
    EXPECT_GT(whole.seen.examples, 20u);
    for (const int n : {2, 3, 7}) {
      if (n == 3 && !small) continue;
      SCOPED_TRACE(std::to_string(n) + " ranks");
      std::vector<cases::Left> parts(static_cast<std::size_t>(n));
      on_ranks(n, [&](Ranks& ranks) {
        const Dataset mine = only(data, range_of(ranks.rank(), n, data.size()));
        parts[static_cast<std::size_t>(ranks.rank())] =
            cases::train(make_cpu_engine, net, mine, way.recipe, ranks);
      });
      std::vector<float> norms;
      std::uint64_t norm_total = 0;
      for (const cases::Left& part : parts) {
        cases::expect_same(part, whole);
        norms.insert(norms.end(), part.norms.begin(), part.norms.end());
        norm_total += part.norm_total;
      }
      EXPECT_EQ(norms, whole.norms);
      EXPECT_EQ(norm_total, whole.norm_total);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RankedEngine, testing::ValuesIn(cases::kCases),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Texts, RankedEngine, testing::ValuesIn(cases::kTextCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RankedEngineLimits, LinearSumsAreThoseOfOne) {
  const cases::Case& c = cases::kCases[0];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, kExamples);
  const RandomStream stream{Generator::chacha20, {{1, 2, 3}}, Stream::sampling, 4};
  const std::vector<float> w = cases::weights_for(net).parameters;
  const std::vector<float> steps = {0.0f, 0.1f, 2.0f};
  const auto sums = [&](LinearEngine& engine) {
    std::vector<double> all;
    for (const bool drawn : {false, true}) {
      if (drawn) engine.draw_batch(stream, std::uint64_t{1} << 30);
      for (const auto& part :
           {engine.clipped_gradient_sum(w, 0.9), engine.clipped_losses(w, steps, 1.3)})
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const auto whole = make_cpu_linear_engine(data, Loss::logistic, 4096.0, 1);
  const std::vector<double> want = sums(*whole);
  for (const int n : {2, 4, 7})
    on_ranks(n, [&](Ranks& ranks) {
      const Dataset mine = only(data, range_of(ranks.rank(), n, data.size()));
      JoinedLinearEngine engine(make_cpu_linear_engine(mine, Loss::logistic, 4096.0, 1), 4096.0,
                                ranks);
      ensure(sums(engine) == want, "sums of linear models differ");
    });
}

}  // namespace
}  // namespace cudp
