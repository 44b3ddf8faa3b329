// The CPU engine on rows of a table by their codes, at every SIMD level: an example adds the units
// that its dense row adds, and no more than the stated sensitivity, whatever it holds.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/coded_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

using cases::Adds;
using cases::CodedModel;
using cases::cpu_engine_at;
using cases::InfluenceCase;
using cases::kCodedModels;

class CodedEngine : public testing::TestWithParam<std::tuple<CodedModel, SimdLevel>> {
 protected:
  void SetUp() override {
    if (!cases::has_simd_level(level())) GTEST_SKIP() << "this processor lacks it";
  }
  static const CodedModel& model() { return std::get<0>(GetParam()); }
  /// A thousand hidden units: a few cases take as long as many of the others.
  static bool is_wide() { return std::string(model().name) == "mlp"; }
  static SimdLevel level() { return std::get<1>(GetParam()); }
  static std::unique_ptr<Engine> engine(const InfluenceCase& c) {
    return cpu_engine_at(level(), c.net, c.settings);
  }
};

/// What a step's sum has of one row, in units of the grid.
std::vector<double> units_of(Engine& engine, const InfluenceCase& c, const Dataset& data) {
  std::vector<double> units;
  for (const float x : cases::released_sum(engine, c, data))
    units.push_back(static_cast<double>(x) / c.grid);
  return units;
}

constexpr Adds kAll[] = {Adds::flat, Adds::per_layer, Adds::automatic, Adds::directions,
                         Adds::transformed};

TEST_P(CodedEngine, ARowAddsTheUnitsOfItsDenseRow) {
  std::size_t numbers = 0;
  std::size_t others = 0;
  for (unsigned seed = 1; seed <= (is_wide() ? 1u : 6u); ++seed)
    for (const Adds adds : kAll) {
      const InfluenceCase c = cases::coded_case(model(), adds, seed, 20, false);
      const auto coded = engine(c);
      const auto dense = engine(c);
      for (std::size_t i = 0; i < c.data.size(); ++i) {
        const Dataset row = select_examples(c.data, {&i, 1});
        const std::vector<double> got = units_of(*coded, c, row);
        const std::vector<double> want = units_of(*dense, c, cudp::dense(row));
        for (std::size_t j = 0; j < want.size(); ++j) {
          // Where the score, or a hidden unit, is rounded otherwise.
          ASSERT_TRUE(std::abs(got[j] - want[j]) <= 1.0)
              << "seed " << seed << ", row " << i << ", number " << j << ": " << got[j]
              << ", expected " << want[j];
          ++numbers;
          others += got[j] != want[j] ? 1 : 0;
        }
      }
    }
  EXPECT_LE(static_cast<double>(others), 0.05 * static_cast<double>(numbers));
}

TEST_P(CodedEngine, ASumIsTheOraclesOfTheDenseRows) {
  for (unsigned seed = 1; seed <= (is_wide() ? 1u : 4u); ++seed)
    for (const Adds adds : {Adds::flat, Adds::per_layer, Adds::automatic}) {
      InfluenceCase c = cases::coded_case(model(), adds, seed, 90, false);
      c.settings.recipe.draw = Poisson{std::uint64_t{1} << 31};
      c.settings.threads = 2;
      reference::ReferenceEngine oracle(c.net, c.settings);
      const std::vector<float> got = cases::released_sum(*engine(c), c, c.data);
      oracle.load(cudp::dense(c.data));
      oracle.set_state(c.state);
      const StepScalars one = cases::still(0.0f, c.clip_norm);
      oracle.run(c.settings.recipe, 3, {&one, 1});
      // The buffer of momentum is the sum.
      const std::vector<float> want = oracle.state().moment1;
      const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
      EXPECT_LE(d.error, 1e-5 * d.size + 1e-5 + cases::grid_error(0.7, want.size(), 90));
    }
}

TEST_P(CodedEngine, GivesTheDenseRowsLogitsNormsAndGradients) {
  const InfluenceCase c = cases::coded_case(model(), Adds::flat, 3, 40, false);
  const Dataset dense = cudp::dense(c.data);
  reference::ReferenceEngine oracle(c.net, c.settings);
  const auto cpu = engine(c);
  cpu->load(c.data);
  oracle.load(dense);
  for (Engine* e : {cpu.get(), static_cast<Engine*>(&oracle)}) e->set_state(c.state);
  const std::vector<float> logits = cpu->logits(c.data);
  const std::vector<float> want_logits = oracle.logits(dense);
  ASSERT_EQ(logits.size(), want_logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(logits[i], want_logits[i], 1e-5 * (1 + std::fabs(want_logits[i])));
  const std::uint32_t some[] = {0, 7, 39};
  const PerExample got = cpu->per_example(some, true);
  const PerExample want = oracle.per_example(some, true);
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * (1 + want.losses[i]));
  for (std::size_t i = 0; i < got.squared_norms.size(); ++i)
    EXPECT_NEAR(got.squared_norms[i], want.squared_norms[i], 2e-5 * want.squared_norms[i] + 1e-9);
  const std::size_t d = c.net.parameter_count;
  for (std::size_t e = 0; e < std::size(some); ++e) {
    const cases::Distance distance =
        cases::distance(got.gradients.data() + e * d, want.gradients.data() + e * d, d);
    EXPECT_LE(distance.error, 1e-5 * distance.size + 1e-12);
  }
}

TEST_P(CodedEngine, DoesNotDependOnTheNumberOfThreads) {
  for (const Adds adds : {Adds::flat, Adds::automatic}) {
    InfluenceCase c = cases::coded_case(model(), adds, 5, 1500, false);
    c.settings.recipe.draw = Poisson{std::uint64_t{3} << 30};
    c.settings.diagnostics = true;
    std::vector<float> first;
    Diagnostics facts;
    for (const int threads : {1, 2, 3, 7}) {
      c.settings.threads = threads;
      const auto e = engine(c);
      const std::vector<float> sum = cases::released_sum(*e, c, c.data);
      const Diagnostics d = e->diagnostics();
      if (first.empty()) {
        first = sum;
        facts = d;
      }
      EXPECT_EQ(first, sum) << threads << " threads";
      EXPECT_EQ(facts.loss(), d.loss());
      EXPECT_EQ(facts.norm(), d.norm());
      EXPECT_EQ(facts.clipped, d.clipped);
    }
  }
}

TEST_P(CodedEngine, CountsWhatTheDenseRowsCount) {
  for (const Adds adds : {Adds::flat, Adds::automatic}) {
    InfluenceCase c = cases::coded_case(model(), adds, 8, 700, false);
    c.settings.diagnostics = true;
    const auto coded = engine(c);
    const auto dense = engine(c);
    cases::released_sum(*coded, c, c.data);
    cases::released_sum(*dense, c, cudp::dense(c.data));
    const Diagnostics got = coded->diagnostics();
    const Diagnostics want = dense->diagnostics();
    EXPECT_EQ(got.examples, 700u);
    EXPECT_EQ(want.examples, 700u);
    EXPECT_EQ(got.non_finite, want.non_finite);
    EXPECT_NEAR(static_cast<double>(got.clipped), static_cast<double>(want.clipped), 1.0);
    EXPECT_NEAR(got.loss(), want.loss(), 1e-5 * want.loss());
    EXPECT_NEAR(got.norm(), want.norm(), 1e-5 * want.norm());
  }
}

/// Rows of which every one moves the same numbers the same way: sums are beyond what 32 bits hold.
TEST_P(CodedEngine, ManyRowsThatPullOneWayAddUp) {
  constexpr std::size_t kRows = 30'000;
  InfluenceCase c = cases::coded_case(model(), Adds::flat, 9, 1, false);
  const RowLayout& layout = *c.data.layout;
  const std::vector<float> numbers(layout.number_feature.size(), 0.0f);
  const std::vector<std::uint32_t> no_features(static_cast<std::size_t>(layout.codes),
                                               static_cast<std::uint32_t>(layout.features));
  const Dataset row = coded_dataset(layout, numbers, no_features, {1}, model().classes);
  const std::vector<double> one = units_of(*engine(c), c, row);
  const std::vector<double> all =
      units_of(*engine(c), c, cases::rows_of(row, std::vector<std::size_t>(kRows, 0)));
  double largest = 0.0;
  for (std::size_t j = 0; j < one.size(); ++j) {
    const double want = static_cast<double>(kRows) * one[j];
    ASSERT_NEAR(all[j], want, 1e-7 * std::fabs(want)) << j;
    largest = std::max(largest, std::fabs(want));
  }
  EXPECT_GT(largest, 0x1p32);
}

/// One engine takes coded and dense rows by turns.
TEST_P(CodedEngine, ASumDoesNotDependOnWhatWasSummedBefore) {
  const InfluenceCase c = cases::coded_case(model(), Adds::flat, 4, 300, false);
  const std::vector<float> coded = cases::released_sum(*engine(c), c, c.data);
  const std::vector<float> dense = cases::released_sum(*engine(c), c, cudp::dense(c.data));
  const auto one = engine(c);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(cases::released_sum(*one, c, c.data), coded);
    EXPECT_EQ(cases::released_sum(*one, c, cudp::dense(c.data)), dense);
  }
}

TEST_P(CodedEngine, ARowAddsNoMoreThanIsStatedWhateverIsBesideIt) {
  const char* const chosen = std::getenv("CUDP_INFLUENCE");
  const unsigned seeds =
      (is_wide() ? 1 : 10) * (chosen != nullptr ? static_cast<unsigned>(std::atoi(chosen)) : 1);
  std::size_t contributions = 0;
  double largest = 0.0;
  for (unsigned seed = 1; seed <= seeds; ++seed)
    for (const Adds adds : kAll) {
      const InfluenceCase c = cases::coded_case(model(), adds, seed, 20 + seed % 21, true);
      const std::optional<float> before = scratch_fill();
      if (seed % 3 != 0) set_scratch_fill(seed % 2 == 0 ? NAN : 1e38f);
      const cases::Influence i = cases::measure_influence([&] { return engine(c); }, c);
      set_scratch_fill(before);
      ASSERT_EQ(i.fault, "") << "seed " << seed;
      contributions += i.contributions;
      largest = std::max(largest, i.largest);
    }
  std::cout << model().name << ", " << simd_name(level()) << ": " << contributions
            << " contributions, the largest is " << largest << " of the stated sensitivity\n";
  EXPECT_GT(largest, 0.9);
}

INSTANTIATE_TEST_SUITE_P(All, CodedEngine,
                         testing::Combine(testing::ValuesIn(kCodedModels),
                                          testing::Values(SimdLevel::baseline, SimdLevel::avx2,
                                                          SimdLevel::avx512)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param).name) + "_" +
                                  std::string(simd_name(std::get<1>(i.param)));
                         });

}  // namespace
}  // namespace cudp
