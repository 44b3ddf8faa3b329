// Class weights in the sums of the CPU engine: behind the clipping, where there is one, so that
// nothing that is stated of an example's share changes; before the rule of candidates and of
// transformed gradients. The oracle shares no code with the engine
// (tests/support/reference/engine.hpp).
#include "runtime/config/class_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/contribution/importance.hpp"
#include "runtime/base/error.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/oracle_sums.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

using cases::Adds;
using cases::CodedModel;
using cases::falling_weights;
using cases::InfluenceCase;
using cases::kCodedModels;

const char* name_of(Adds adds) {
  static constexpr const char* kNames[] = {"flat", "per_layer", "automatic", "directions",
                                           "transformed"};
  return kNames[static_cast<int>(adds)];
}

class ClassWeightsOnTables : public testing::TestWithParam<std::tuple<CodedModel, Adds>> {
 protected:
  static InfluenceCase weighted_case(unsigned seed) {
    const auto& [model, adds] = GetParam();
    InfluenceCase c = cases::coded_case(model, adds, seed, 60, false);
    c.settings.class_weights = falling_weights(model.classes);
    return c;
  }
  static std::vector<float> sum_of(const InfluenceCase& c, const Dataset& data) {
    return cases::released_sum(*make_cpu_engine(c.net, c.settings), c, data);
  }
  static bool clips() {
    const Adds adds = std::get<1>(GetParam());
    return adds == Adds::flat || adds == Adds::per_layer || adds == Adds::automatic;
  }
};

/// Rows by codes and dense ones.
TEST_P(ClassWeightsOnTables, ASumIsTheOracles) {
  if (std::get<1>(GetParam()) == Adds::directions)
    GTEST_SKIP() << "float32 and double accept others; their norms are held below";
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const InfluenceCase c = weighted_case(seed);
    const Dataset dense = cudp::dense(c.data);
    const reference::Values want = cases::oracle_sum(c);
    double plain = 0.0;
    for (const Dataset* data : {&c.data, &dense}) {
      const std::vector<float> got = sum_of(c, *data);
      const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
      // The norm of a transformed gradient counts what cancelled in it (dense_square).
      const double of_norm = clips() ? 1e-5 : 1e-3;
      EXPECT_LE(d.error, of_norm * (d.size + 1.0) + cases::grid_error(1.0, want.size(), 60));
      InfluenceCase without = c;
      without.settings.class_weights.clear();
      const std::vector<float> unweighted = sum_of(without, *data);
      plain = cases::distance(unweighted.data(), want.data(), want.size()).error;
      EXPECT_GT(plain, 100.0 * d.error) << "weights show in the sum";
    }
  }
}

/// A row of class k adds weight k times what it adds without weights, to the grid's rounding.
TEST_P(ClassWeightsOnTables, AWeightIsBehindTheClipping) {
  if (!clips()) GTEST_SKIP() << "their bound follows from the weighted gradient";
  const InfluenceCase c = weighted_case(5);
  InfluenceCase without = c;
  without.settings.class_weights.clear();
  for (std::size_t i = 0; i < 20; ++i) {
    const Dataset row = select_examples(c.data, {&i, 1});
    const std::vector<float> got = sum_of(c, row);
    const std::vector<float> plain = sum_of(without, row);
    const float weight = c.settings.class_weights[c.data.labels[i]];
    for (std::size_t j = 0; j < got.size(); ++j)
      ASSERT_NEAR(got[j], weight * plain[j], c.grid * 1.01 + 2e-7 * std::fabs(plain[j]))
          << "row " << i << ", number " << j;
  }
}

TEST_P(ClassWeightsOnTables, WeightsOfOneChangeNoBit) {
  InfluenceCase c = weighted_case(2);
  std::ranges::fill(c.settings.class_weights, 1.0f);
  const std::vector<float> ones = sum_of(c, c.data);
  c.settings.class_weights.clear();
  EXPECT_EQ(ones, sum_of(c, c.data));
}

/// What a clipped gradient counts as is its own, and so is its loss; of others the weighted one.
TEST_P(ClassWeightsOnTables, DiagnosticsAreOfTheGradientThatIsClipped) {
  InfluenceCase c = weighted_case(4);
  c.settings.diagnostics = true;
  const auto facts = [&](bool weighted) {
    InfluenceCase of = c;
    if (!weighted) of.settings.class_weights.clear();
    const auto engine = make_cpu_engine(of.net, of.settings);
    cases::released_sum(*engine, of, of.data);
    return engine->diagnostics();
  };
  const Diagnostics with = facts(true);
  const Diagnostics without = facts(false);
  EXPECT_EQ(with.examples, without.examples);
  EXPECT_EQ(with.loss(), without.loss());
  if (clips()) {
    EXPECT_EQ(with.clipped, without.clipped);
    EXPECT_EQ(with.norm(), without.norm());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClassWeightsOnTables,
                         testing::Combine(testing::ValuesIn(kCodedModels),
                                          testing::Values(Adds::flat, Adds::per_layer,
                                                          Adds::automatic, Adds::directions,
                                                          Adds::transformed)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param).name) + "_" +
                                  name_of(std::get<1>(i.param));
                         });

/// The norms that candidates are drawn by are those of the weighted loss's gradients, and the
/// direction of one that is accepted has norm 1 whatever its weight.
TEST(ClassWeights, CandidatesHaveTheNormsOfTheWeightedLoss) {
  InfluenceCase c = cases::coded_case(kCodedModels[2], Adds::directions, 3, 40, false);
  const auto norms = [&] {
    const auto engine = make_cpu_engine(c.net, c.settings);
    engine->load(c.data);
    engine->set_state(c.state);
    engine->measure_norms();
    return engine->norms();
  };
  const std::vector<float> plain = norms();
  c.settings.class_weights = falling_weights(5);
  const std::vector<float> weighted = norms();
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_NEAR(weighted[i], c.settings.class_weights[c.data.labels[i]] * plain[i],
                1e-6 * plain[i]);
  const std::vector<float> sum =
      cases::released_sum(*make_cpu_engine(c.net, c.settings), c, c.data);
  EXPECT_GT(cases::distance(sum.data(), sum.data(), sum.size()).size, 0.0);
}

/// Who is accepted follows from the norm of the weighted loss's gradient, example by example and
/// step by step, and that norm is kept.
TEST(ClassWeights, CandidatesAreAcceptedByTheNormsOfTheWeightedLoss) {
  InfluenceCase c = cases::coded_case(kCodedModels[2], Adds::directions, 3, 20, false);
  const auto measure = [&] {
    const auto engine = make_cpu_engine(c.net, c.settings);
    engine->load(c.data);
    engine->set_state(c.state);
    engine->measure_norms();
    return engine->norms();
  };
  const std::vector<float> plain = measure();
  c.settings.class_weights = falling_weights(5);
  // Everybody is a candidate, and nobody's norm is cut.
  const double clip = 2.0 * static_cast<double>(*std::ranges::max_element(plain));
  const ImportanceRule rule{.clip = clip, .multiple = 2.0, .min_norm = clip, .rate = 0.6 / clip};
  c.settings.recipe.draw = Candidates{rule};
  const auto engine = make_cpu_engine(c.net, c.settings);
  int accepted = 0, otherwise = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const float weight = c.settings.class_weights[c.data.labels[i]];
    const auto threshold = [&](float norm) { return acceptance_threshold(rule, INFINITY, norm); };
    const Dataset row = select_examples(c.data, {&i, 1});
    engine->load(row);
    for (std::uint64_t step = 0; step < 30; ++step) {
      const std::uint32_t word =
          random_word({c.settings.generator, c.settings.key.key(), Stream::acceptance, step}, 0);
      if (std::fabs(word - static_cast<double>(threshold(weight * plain[i]))) < 0x1p16) continue;
      TrainState state = c.state;
      state.norms = {INFINITY};
      engine->set_state(state);
      c.released->sum.clear();
      const StepScalars one = cases::still(0.0f, 1.0f);
      engine->run(c.settings.recipe, step, {&one, 1});
      const bool adds = std::ranges::any_of(c.released->sum, [](float x) { return x != 0.0f; });
      EXPECT_EQ(adds, word < threshold(weight * plain[i])) << "row " << i << ", step " << step;
      EXPECT_NEAR(engine->norms().at(0), weight * plain[i], 1e-6 * plain[i]);
      accepted += adds ? 1 : 0;
      otherwise += (word < threshold(weight * plain[i])) != (word < threshold(plain[i])) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(otherwise, 20) << "without weights others would be accepted";
}

/// Convolutions, normalisation, pooling; and words' vectors, a cell and a mean.
TEST(ClassWeights, SumsOfImagesAndTextsAreTheOracles) {
  std::vector<cases::Case> all(std::begin(cases::kCases), std::end(cases::kCases));
  all.insert(all.end(), std::begin(cases::kTextCases), std::end(cases::kTextCases));
  for (const cases::Case& of : all) {
    const Network net = cases::network_of(of);
    const Dataset data = cases::examples_for(of, 12);
    for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
      EngineSettings s;
      s.recipe.draw = Poisson{std::uint64_t{1} << 32};
      s.recipe.contribution = ClippedGradient{kind};
      s.class_weights = falling_weights(of.classes);
      reference::ReferenceEngine oracle(net, s);
      const std::vector<float> want = cases::clipped_sum(oracle, s.recipe, net, data, 0.5f);
      const std::vector<float> got =
          cases::clipped_sum(*make_cpu_engine(net, s), s.recipe, net, data, 0.5f);
      const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
      EXPECT_LE(d.error, 1e-4 * d.size + 1e-5 * std::sqrt(static_cast<double>(want.size())))
          << of.name << ", clipping " << static_cast<int>(kind);
    }
  }
}

TEST(ClassWeights, AClassOfWeightZeroAddsNothing) {
  InfluenceCase c = cases::coded_case(kCodedModels[0], Adds::flat, 3, 40, false);
  c.settings.class_weights = {0.0f, 1.0f};
  std::vector<std::size_t> second;
  for (std::size_t i = 0; i < c.data.size(); ++i)
    if (c.data.labels[i] == 1) second.push_back(i);
  const auto engine = make_cpu_engine(c.net, c.settings);
  const std::vector<float> all = cases::released_sum(*engine, c, c.data);
  EXPECT_EQ(all, cases::released_sum(*engine, c, select_examples(c.data, second)));
}

TEST(ClassWeights, AreOverTheLargest) {
  EXPECT_EQ(relative_class_weights({1.0, 4.0, 0.0}), (std::vector<float>{0.25f, 1.0f, 0.0f}));
  EXPECT_EQ(relative_class_weights({1e30, 1e-30}), (std::vector<float>{1.0f, 0.0f}));
  EXPECT_TRUE(relative_class_weights({}).empty());
  EXPECT_EQ(sign_weights({2.0, 1.0}), (SignWeights{.negative = 1.0f, .positive = 0.5f}));
  EXPECT_EQ(sign_weights({}), SignWeights{});
  EXPECT_EQ(class_weights_text({1.0, 20.0, 0.5}), "1,20,0.5");
}

/// Whatever is above 1 would add more than is stated.
TEST(ClassWeights, ABoundIsHeldWhoeverAsks) {
  const Network net = cases::network_of(cases::kCases[0]);
  for (const std::vector<float>& wrong :
       {std::vector<float>{1.0f, 1.5f}, {1.0f, -0.5f}, {1.0f, NAN}, {1.0f}}) {
    EngineSettings s;
    s.class_weights = wrong;
    EXPECT_THROW(make_cpu_engine(net, s), Error);
  }
}

}  // namespace
}  // namespace cudp
