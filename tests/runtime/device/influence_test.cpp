// One row moves only itself: what an example adds to a sum is a function of that example, and no
// more than the stated sensitivity, whatever numbers it holds and whatever lay in an engine's
// memory before. Random models, rows and settings; CUDP_INFLUENCE is how many times as many as in
// CI (scripts/check.sh influence).
#include "tests/support/influence.hpp"

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Influence;
using cases::InfluenceCase;

unsigned times() {
  const char* const chosen = std::getenv("CUDP_INFLUENCE");
  return chosen != nullptr ? static_cast<unsigned>(std::atoi(chosen)) : 1;
}

/// What an engine may find in its memory.
constexpr std::array<float, 3> kFillings = {NAN, 1e38f, 0.0f};

class Scratch {
 public:
  explicit Scratch(std::optional<float> fill) : before_(scratch_fill()) { set_scratch_fill(fill); }
  ~Scratch() { set_scratch_fill(before_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  std::optional<float> before_;
};

struct Total {
  std::size_t contributions = 0;
  double largest = 0.0;

  void add(const Influence& i, unsigned seed) {
    ASSERT_EQ(i.fault, "") << "seed " << seed;
    contributions += i.contributions;
    largest = std::max(largest, i.largest);
  }
  void print(const std::string& name) const {
    std::cout << name << ": " << contributions << " contributions, the largest is " << largest
              << " of the stated sensitivity\n";
  }
};

class InfluenceOnCpu : public testing::TestWithParam<std::tuple<SimdLevel, bool>> {};

TEST_P(InfluenceOnCpu, ARowAddsTheSameWhateverIsBesideAndBeforeIt) {
  const auto [level, texts] = GetParam();
  if (!cases::has_simd_level(level)) GTEST_SKIP() << "this processor has no " << simd_name(level);
  Total total;
  const unsigned models = (texts ? 360 : 600) * times();
  for (unsigned seed = 1; seed <= models && !HasFatalFailure(); ++seed) {
    // More rows than slots.
    InfluenceCase c = cases::influence_case(seed, texts, 40 + seed % 31);
    cases::weigh_classes(c, seed);
    // In every third case memory is as the rows before left it.
    const Scratch scratch(seed % 3 == 0 ? std::nullopt
                                        : std::optional(kFillings[seed / 3 % kFillings.size()]));
    total.add(
        cases::measure_influence([&] { return cases::cpu_engine_at(level, c.net, c.settings); }, c),
        seed);
  }
  total.print(std::string(simd_name(level)) + (texts ? ", texts" : ", images and tables"));
  EXPECT_GE(total.contributions, models * 40);
}
INSTANTIATE_TEST_SUITE_P(All, InfluenceOnCpu,
                         testing::Combine(testing::Values(SimdLevel::baseline, SimdLevel::avx2,
                                                          SimdLevel::avx512),
                                          testing::Bool()),
                         [](const auto& i) {
                           return std::string(simd_name(std::get<0>(i.param))) +
                                  (std::get<1>(i.param) ? "_texts" : "");
                         });

/// Large inputs and small gradients in the dense layers, whose product counts.
class DenseEdgeOnCpu : public testing::TestWithParam<SimdLevel> {};

TEST_P(DenseEdgeOnCpu, SmallGradientsTimesLargeInputsAreClipped) {
  if (!cases::has_simd_level(GetParam())) GTEST_SKIP() << "this processor lacks it";
  Total total;
  const unsigned models = 500 * times();
  for (unsigned seed = 1; seed <= models && !HasFatalFailure(); ++seed) {
    InfluenceCase c = cases::dense_edge_case(seed, seed % 4 != 0, 10);
    if (seed % 2 == 0) cases::weigh_classes(c, seed);
    total.add(cases::measure_influence(
                  [&] { return cases::cpu_engine_at(GetParam(), c.net, c.settings); }, c),
              seed);
  }
  total.print(std::string(simd_name(GetParam())) + ", dense layers at the edge");
  EXPECT_GT(total.largest, 0.99);
}

/// |x| = 1e12 and |dy| = 2.58e-23, whose square float32 does not hold: 25.8 times C = 1e-12, and
/// beyond what the sum's units hold.
TEST_P(DenseEdgeOnCpu, AGradientWhoseSquareVanishesIsClipped) {
  if (!cases::has_simd_level(GetParam())) GTEST_SKIP() << "this processor lacks it";
  InfluenceCase c;
  c.model = "logistic";
  c.net = build_network(parse_model(builtin_model("logistic"), "edge", 3), {1, 1, 1}, 3);
  cases::prepare(c, 1);
  c.clip_norm = 1e-12f;
  cases::state_bound(c);
  c.data.shape = {1, 1, 1};
  c.data.classes = 3;
  c.data.floats = {1e12f};
  c.data.labels = {0};
  c.state.parameters = {0.0f, 0.0f, 0.0f, 52.01f, 0.0f, -100.0f};
  c.state.moment1.assign(6, 0.0f);
  Total total;
  total.add(cases::measure_influence(
                [&] { return cases::cpu_engine_at(GetParam(), c.net, c.settings); }, c),
            1);
}
INSTANTIATE_TEST_SUITE_P(All, DenseEdgeOnCpu,
                         testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512),
                         [](const auto& i) { return std::string(simd_name(i.param)); });

/// Layer by layer, and in the kernel that takes whole small networks.
TEST(InfluenceOnCuda, SmallGradientsTimesLargeInputsAreClipped) {
  Total total;
  const unsigned models = 60 * times();
  for (unsigned seed = 1; seed <= models && !HasFatalFailure(); ++seed) {
    InfluenceCase c = cases::dense_edge_case(seed, seed % 4 != 0, 5);
    cases::weigh_classes(c, seed);
    c.settings.micro_batch = 3;
    total.add(cases::measure_influence(
                  [&] {
                    return seed % 2 == 0 ? device_engine(c.net, c.settings)
                                         : layer_wise_engine(c.net, c.settings);
                  },
                  c),
              seed);
  }
  total.print("CUDA, dense layers at the edge");
  EXPECT_GT(total.largest, 0.99);
}

TEST(InfluenceOnCuda, ARowAddsTheSameWhateverIsBesideAndBeforeIt) {
  Total total;
  const unsigned models = 24 * times();
  for (unsigned seed = 1; seed <= models && !HasFatalFailure(); ++seed) {
    InfluenceCase c = cases::influence_case(seed, false, 7);
    cases::weigh_classes(c, seed);
    c.settings.micro_batch = 3;
    const Scratch scratch(seed % 3 == 0 ? std::nullopt
                                        : std::optional(kFillings[seed / 3 % kFillings.size()]));
    total.add(cases::measure_influence(
                  [&] {
                    return seed % 2 == 0 ? device_engine(c.net, c.settings)
                                         : layer_wise_engine(c.net, c.settings,
                                                             seed % 4 == 1 ? 1 : cuda::kLargeDense);
                  },
                  c),
              seed);
  }
  total.print("CUDA");
}

}  // namespace
}  // namespace cudp
