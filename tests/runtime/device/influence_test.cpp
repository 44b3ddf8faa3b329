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

/// Images or features for a network whose fused kernel has fp16 operands, with ReLUs, so that sums
/// may be beyond fp16. Row 1 is beyond fp16 by one finite feature, row 2 has a NaN, and row 3 is
/// beyond fp16 where its ReLUs add up.
InfluenceCase halves_case(const char* model, const Shape& input, Precision precision,
                          unsigned seed) {
  InfluenceCase c;
  c.model = model;
  c.net = build_network(parse_model(builtin_model(model), model, 10), input, 10);
  for (NetworkLayer& l : c.net.layers)
    if (auto* f = std::get_if<Activate>(&l.layer)) *f = {Activation::relu};
  c.settings.precision = precision;
  c.settings.recipe.contribution =
      ClippedGradient{seed % 2 == 0 ? Clipping::per_layer : Clipping::flat};
  cases::prepare(c, seed);
  c.clip_norm = 0.5f;
  cases::state_bound(c);
  c.state = cases::weights_for(c.net);
  c.state.moment1.assign(c.net.parameter_count, 0.0f);
  c.data.shape = input;
  c.data.classes = 10;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto features = static_cast<std::size_t>(input.size());
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t i = 0; i < features; ++i)
      c.data.floats.push_back((row == 3 ? 3e4f : 1.0f) * normal(random));
    c.data.labels.push_back(static_cast<std::uint8_t>(row));
  }
  c.data.floats[features + features / 2] = 1e6f;
  c.data.floats[2 * features + features / 2] = NAN;
  return c;
}

TEST(InfluenceOnCuda, RowsOfFp16AddTheSameWhateverIsBesideAndBeforeThem) {
  Total total;
  unsigned seed = 0;
  for (const auto& [model, input] :
       {std::pair{"cnn", Shape{1, 28, 28}}, {"scatter-cnn", {81, 7, 7}}})
    for (const Precision precision : {Precision::tf32, Precision::fp32}) {
      const InfluenceCase c = halves_case(model, input, precision, ++seed);
      const auto make = [&] {  // one block, so that its memory serves one group after the other
        return fused_engine(
            c.net, c.settings,
            {.seed = seed, .shared_bytes = std::size_t{227} * 1024, .multiprocessors = 1});
      };
      const auto engine = make();
      for (std::size_t row = 0; row < c.data.size(); ++row) {
        const std::vector<float> sum =
            cases::released_sum(*engine, c, cases::rows_of(c.data, {&row, 1}));
        EXPECT_EQ(std::ranges::count(sum, 0.0f) == static_cast<std::ptrdiff_t>(sum.size()),
                  row >= 1 && row <= 3)
            << model << ", row " << row;
      }
      total.add(cases::measure_influence(make, c), seed);
    }
  total.print("CUDA, operands in fp16");
}

}  // namespace
}  // namespace cudp
