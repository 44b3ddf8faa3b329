// The emulated CUDA engine on several ranks: the state of one, to the bit. The emulator knows one
// thread, so that ranks are processes here.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/threads.hpp"
#include "runtime/ranks/launch.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/ranked_training.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

constexpr std::size_t kExamples = 520;  // two tiles, the last one short

/// What a rank sends of what its training left; norms apart, which are of its own examples.
std::string bytes_of(const cases::Left& left) {
  std::string all;
  const TrainState& s = left.state;
  for (const auto* array :
       {&s.parameters, &s.moment1, &s.moment2, &s.average, &s.mean, &s.deviation})
    all.append(reinterpret_cast<const char*>(array->data()), array->size() * sizeof(float));
  std::int64_t seen[Diagnostics::kWords];
  left.seen.to_words(seen);
  all.append(reinterpret_cast<const char*>(seen), sizeof seen);
  all.append(reinterpret_cast<const char*>(&s.step_size_sum), sizeof s.step_size_sum);
  return all;
}

struct Engines {
  const char* name;
  int model;  ///< of cases::kCases
  bool fused;
  Precision precision = Precision::fp32;
  bool small = true;
  bool on_device = false;  ///< whether the emulated devices add up the ranks' sums
};

/// NCCL's twin is there.
RankSumsOfTest adding_up() { return {.refusal = ""}; }

class RankedCuda : public testing::TestWithParam<Engines> {};

TEST_P(RankedCuda, AnyNumberOfRanksHasTheStateOfOne) {
  const Engines& e = GetParam();
  const cases::Case& c = cases::kCases[e.model];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, kExamples);
  const auto make = [&](const Network& n, EngineSettings s) {
    s.precision = e.precision;
    TestDevice device{.shared_bytes = std::size_t{e.fused ? 227u : 48u} << 10};
    if (e.on_device) device.sums = adding_up();
    return e.fused ? fused_engine(n, s, device)
                   : layer_wise_engine(n, s, cuda::kLargeDense, device);
  };
  const int steps = e.small ? 3 : 2;
  for (const cases::Way& way : cases::ways()) {
    const bool by_norms = std::holds_alternative<Candidates>(way.recipe.draw);
    if (!e.small && by_norms) continue;  // norms of all examples take the emulator too long
    if (e.fused && way.recipe.step_size) continue;
    SCOPED_TRACE(way.name);
    const cases::Left whole = cases::train(make, net, data, way.recipe, alone(), steps);
    for (const int n : {2, 4}) {
      SCOPED_TRACE(std::to_string(n) + " ranks");
      const auto part = [&](Ranks& ranks) {
        const Dataset mine = only(data, range_of(ranks.rank(), n, data.size()));
        const cases::Left left = cases::train(make, net, mine, way.recipe, ranks, steps);
        const auto states = gather_text(ranks, "states", bytes_of(left));
        const auto norms = ranks.gather("norms", std::as_bytes(std::span(left.norms)));
        if (!ranks.leads()) return;
        for (const std::string& state : states)
          EXPECT_TRUE(state == bytes_of(whole)) << "another state";
        std::string all;
        for (const std::string& own : norms) all += own;
        ASSERT_EQ(all.size(), whole.norms.size() * sizeof(float));
        EXPECT_EQ(std::memcmp(all.data(), whole.norms.data(), all.size()), 0);
      };
      const auto ranks = fork_ranks(n, std::chrono::seconds(300), [&](Ranks& mine) {
        part(mine);
        return Exit::ok;
      });
      part(*ranks);
    }
  }
  share_cores(1);
}

INSTANTIATE_TEST_SUITE_P(
    Engines, RankedCuda,
    testing::Values(Engines{"fused_logistic", 0, true}, Engines{"fused_mlp", 3, true},
                    Engines{"layers_logistic", 0, false},
                    Engines{"layers_mlp", 3, false, Precision::fp32, false},
                    Engines{"layers_unusual", 8, false, Precision::fp32, false},
                    Engines{"fused_cnn", 4, true, Precision::fp32, false},
                    Engines{"tf32", 8, false, Precision::tf32, false},
                    Engines{"fused_mlp_on_devices", 3, true, Precision::fp32, true, true},
                    Engines{"tf32_on_devices", 8, false, Precision::tf32, false, true}),
    [](const auto& info) { return std::string(info.param.name); });

/// Ranks of rows that have targets, class weights, or numbers with gaps.
TEST(RankedCudaTraining, OtherRowsHaveTheStateOfOneRank) {
  std::mt19937 random(5);
  const auto rows = [&](const cases::InfluenceCase& c, bool gaps) {
    Dataset data = empty_like(c.data);
    while (data.size() < kExamples)
      append_examples(c.data, {0, std::min(c.data.size(), kExamples - data.size())}, data);
    std::uint32_t number = 300;
    for (std::size_t i = 0; gaps && i < kExamples; ++i)
      data.numbers.push_back(number += 1 + random() % 3);
    return data;
  };
  struct Rows {
    cases::InfluenceCase of;
    Dataset data;
    std::vector<float> weights;
  };
  const auto target = cases::target_case("linear", Loss::huber, cases::Adds::flat, 3);
  const auto table = cases::coded_case(cases::kCodedModels[2], cases::Adds::flat, 3, 60, false);
  const Rows all[] = {{target, rows(target, true), {}},
                      {table, rows(table, true), cases::falling_weights(5)},
                      {table, rows(table, false), cases::falling_weights(5)}};
  for (const Rows& of : all)
    for (const bool fused : {true, false})
      for (const cases::Way& way : cases::ways()) {
        if (way.recipe.step_size) continue;
        SCOPED_TRACE(way.name);
        const auto make = [&](const Network& n, EngineSettings s) {
          s.class_weights = of.weights;
          s.micro_batch = 32;
          return fused ? fused_engine(n, s, {}) : layer_wise_engine(n, s);
        };
        const cases::Left whole = cases::train(make, of.of.net, of.data, way.recipe, alone(), 3);
        EXPECT_GT(whole.seen.examples, 10u);
        const auto part = [&](Ranks& ranks) {
          const ExampleRange range = range_of(ranks.rank(), 2, of.data.size());
          Dataset mine = only(of.data, range);
          if (!of.data.numbers.empty())
            mine.numbers.assign(of.data.numbers.begin() + static_cast<std::ptrdiff_t>(range.begin),
                                of.data.numbers.begin() + static_cast<std::ptrdiff_t>(range.end));
          const auto states = gather_text(
              ranks, "states", bytes_of(cases::train(make, of.of.net, mine, way.recipe, ranks, 3)));
          if (!ranks.leads()) return;
          for (const std::string& state : states)
            EXPECT_TRUE(state == bytes_of(whole)) << "another state";
        };
        const auto ranks = fork_ranks(2, std::chrono::seconds(300), [&](Ranks& mine) {
          part(mine);
          return Exit::ok;
        });
        part(*ranks);
      }
  share_cores(1);
}

/// What three steps of two ranks came to on one of them.
struct Came {
  std::size_t launches = 0;
  int recordings = 0;
  int rank_sums = 0;
  std::string said;
  std::string error;

  friend bool operator==(const Came&, const Came&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Came& c) {
    return out << c.launches << " launches, " << c.recordings << " recordings, " << c.rank_sums
               << " sums on the device; said: " << c.said << "; error: " << c.error;
  }
};

/// Two ranks, on devices that say this of sums; each looks at what it came to.
template <class Look>
void train_two(const std::function<RankSumsOfTest(int rank)>& sums, SumBy by, const Look& look) {
  const Network net = cases::network_of(cases::kCases[0]);
  const Dataset data = cases::examples_for(cases::kCases[0], 1'024);
  const auto part = [&](Ranks& ranks) {
    Came came;
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 30};
    s.ranks = &ranks;
    s.sum_by = by;
    s.say = [&](const std::string& line) { came.said += line; };
    DeviceLog log;
    const auto engine = fused_engine(net, s, {.sums = sums(ranks.rank()), .log = &log});
    try {
      engine->load(only(data, range_of(ranks.rank(), 2, data.size())));
      engine->set_state(cases::weights_for(net));
      const std::vector<StepScalars> steps(3, cases::still());
      engine->run(s.recipe, 0, steps);
    } catch (const RanksError&) {
      throw;
    } catch (const Error& e) {
      came.error = e.what();
    }
    came.launches = log.launches.size();
    came.recordings = log.recordings;
    came.rank_sums = log.rank_sums;
    std::ostringstream text;
    text << came;
    const auto all = gather_text(ranks, "what it came to", text.str());
    if (!ranks.leads()) return;
    EXPECT_EQ(all[1], all[0]);
    look(came);
  };
  const auto ranks = fork_ranks(2, std::chrono::seconds(60), [&](Ranks& mine) {
    part(mine);
    return Exit::ok;
  });
  part(*ranks);
  share_cores(1);
}

/// The sum of the slabs is a launch of its own, behind which the ranks' sums are added up.
TEST(RankedCudaSums, AStepIsFiveLaunchesInTwoRecordingsByTheHostAndInOneByDevices) {
  train_two(
      [](int) { return RankSumsOfTest{}; }, SumBy::automatic,
      [](const Came& c) {
        EXPECT_EQ(
            c, (Came{15, 2, 0,
                     "sums of ranks: by the host (rank 0: an emulated device has no NCCL)", ""}));
      });
  for (const SumBy by : {SumBy::automatic, SumBy::nccl})
    train_two([](int) { return adding_up(); }, by,
              [](const Came& c) {
                // One sum is tried before.
                EXPECT_EQ(c, (Came{15, 1, 4,
                                   "sums of ranks: by NCCL's twin, inside the recorded step", ""}));
              });
  train_two([](int) { return adding_up(); }, SumBy::host,
            [](const Came& c) {
              EXPECT_EQ(c, (Came{15, 2, 0, "sums of ranks: by the host (--sum-by host)", ""}));
            });
}

TEST(RankedCudaSums, WhereOneRankCannotAllGoByTheHost) {
  const auto odd = [](const RankSumsOfTest& one) {
    return [one](int rank) { return rank == 1 ? one : adding_up(); };
  };
  const auto same = [](const RankSumsOfTest& all) { return [all](int) { return all; }; };
  struct Row {
    std::function<RankSumsOfTest(int)> sums;
    const char* why;
    int tried;
  };
  const Row rows[] = {
      {odd({}), "rank 1: an emulated device has no NCCL", 0},
      {odd({.refusal = "", .library = "NCCL 2.9.1"}), "rank 1 has NCCL 2.9.1, rank 0 NCCL's twin",
       0},
      {same({.refusal = "", .device = "one"}),
       "rank 1 shares its device with another, which NCCL 2.30 and later allow with "
       "NCCL_MULTI_RANK_GPU_ENABLE=1",
       0},
      {odd({.refusal = "", .fails = "unhandled cuda error"}), "rank 1: unhandled cuda error", 0},
      {same({.refusal = "", .words_left_out = 1}), "rank 0: a test sum is wrong", 1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    train_two(row.sums, SumBy::automatic, [&](const Came& c) {
      EXPECT_EQ(c, (Came{15, 2, row.tried,
                         "sums of ranks: by the host (" + std::string(row.why) + ")", ""}));
    });
    train_two(row.sums, SumBy::nccl, [&](const Came& c) {
      EXPECT_EQ(c.error, "--sum-by: expected auto or host, since NCCL cannot add up (" +
                             std::string(row.why) + "), found nccl");
      EXPECT_EQ(c.launches, 0u);
    });
  }
  train_two([](int) { return RankSumsOfTest{.refusal = "", .device = "one", .may_share = true}; },
            SumBy::automatic, [](const Came& c) { EXPECT_EQ(c.rank_sums, 4); });
}

/// Steps with pairs of normals that the device cannot decide: the sum is still needed then, and no
/// sum over ranks may be made in between.
TEST(RankedCudaSums, OutlastStepsThatTheHostCompletes) {
  const Network net = cases::network_of(cases::kCases[3]);
  const Dataset data = cases::examples_for(cases::kCases[3], kExamples);
  StepScalars loud = cases::still(0.25f);
  loud.noise_std = 0x1p19f;
  const auto state_of = [&](Ranks& ranks, const Dataset& mine, const RankSumsOfTest& sums,
                            std::size_t& completed) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 26};
    s.key = {{11, 22, 33, 44, 55, 66, 77, 88}};
    s.ranks = &ranks;
    DeviceLog log;
    const auto engine =
        fused_engine(net, s, {.shared_bytes = std::size_t{227} << 10, .sums = sums, .log = &log});
    engine->load(mine);
    engine->set_state(cases::weights_for(net));
    engine->run(s.recipe, 0, std::vector<StepScalars>(5, loud));
    completed = static_cast<std::size_t>(std::ranges::count(log.launches, "finish pairs"));
    return engine->state().parameters;
  };
  std::size_t completed = 0;
  const std::vector<float> want = state_of(alone(), data, {}, completed);
  EXPECT_GE(completed, 1u);
  for (const RankSumsOfTest& sums : {RankSumsOfTest{}, adding_up()}) {
    const auto part = [&](Ranks& ranks) {
      std::size_t also_completed = 0;
      const Dataset mine = only(data, range_of(ranks.rank(), 2, data.size()));
      const std::vector<float> got = state_of(ranks, mine, sums, also_completed);
      for (const std::string& state : ranks.gather("states", std::as_bytes(std::span(got))))
        EXPECT_TRUE(state.size() == want.size() * sizeof(float) &&
                    std::memcmp(state.data(), want.data(), state.size()) == 0);
      EXPECT_EQ(also_completed, completed) << ranks.rank();
    };
    const auto ranks = fork_ranks(2, std::chrono::seconds(120), [&](Ranks& mine) {
      part(mine);
      return Exit::ok;
    });
    part(*ranks);
    share_cores(1);
  }
}

/// What was seen has a word for each kind of example, up to the last behind the sum.
TEST(RankedCudaSums, CountExamplesThatAreNotFinite) {
  const Network net = cases::network_of(cases::kCases[0]);
  const Dataset data = cases::examples_for(cases::kCases[0], 1'024);
  const auto seen_of = [&](Ranks& ranks, const Dataset& mine, const RankSumsOfTest& sums) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 30};
    s.diagnostics = true;
    s.ranks = &ranks;
    const auto engine = fused_engine(net, s, {.sums = sums});
    engine->load(mine);
    TrainState nowhere = cases::weights_for(net);
    nowhere.parameters[0] = std::numeric_limits<float>::quiet_NaN();
    engine->set_state(nowhere);
    engine->run(s.recipe, 0, std::vector<StepScalars>(2, cases::still()));
    std::vector<std::int64_t> words(Diagnostics::kWords);
    engine->diagnostics().to_words(words.data());
    return words;
  };
  const std::vector<std::int64_t> want = seen_of(alone(), data, {});
  EXPECT_GT(want.back(), 0) << "non-finite ones";
  for (const RankSumsOfTest& sums : {RankSumsOfTest{}, adding_up()}) {
    const auto part = [&](Ranks& ranks) {
      const Dataset mine = only(data, range_of(ranks.rank(), 2, data.size()));
      EXPECT_EQ(seen_of(ranks, mine, sums), want);
    };
    const auto ranks = fork_ranks(2, std::chrono::seconds(60), [&](Ranks& mine) {
      part(mine);
      return Exit::ok;
    });
    part(*ranks);
    share_cores(1);
  }
}

}  // namespace
}  // namespace cudp
