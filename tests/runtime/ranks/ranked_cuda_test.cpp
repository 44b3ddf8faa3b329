// The emulated CUDA engine on several ranks: the state of one, to the bit. The emulator knows one
// thread, so that ranks are processes here.
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/threads.hpp"
#include "runtime/ranks/launch.hpp"
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
};

class RankedCuda : public testing::TestWithParam<Engines> {};

TEST_P(RankedCuda, AnyNumberOfRanksHasTheStateOfOne) {
  const Engines& e = GetParam();
  const cases::Case& c = cases::kCases[e.model];
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, kExamples);
  const auto make = [&](const Network& n, EngineSettings s) {
    s.precision = e.precision;
    return e.fused ? fused_engine(n, s, {.shared_bytes = std::size_t{227} << 10})
                   : layer_wise_engine(n, s);
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
                    Engines{"tf32", 8, false, Precision::tf32, false}),
    [](const auto& info) { return std::string(info.param.name); });

/// The sum of the slabs is a launch of its own, behind which the ranks' sums are added up.
TEST(RankedCudaLaunches, AStepIsFiveLaunchesInTwoRecordings) {
  const Network net = cases::network_of(cases::kCases[0]);
  const Dataset data = cases::examples_for(cases::kCases[0], kExamples);
  const auto step = [&](Ranks& ranks) {
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 30};
    s.ranks = &ranks;
    DeviceLog log;
    const auto engine = fused_engine(net, s, {.log = &log});
    const Dataset mine = only(data, range_of(ranks.rank(), 2, data.size()));
    engine->load(mine);
    engine->set_state(cases::weights_for(net));
    const std::vector<StepScalars> steps(3, cases::still());
    engine->run(s.recipe, 0, steps);
    return std::pair(log.launches.size(), log.recordings);
  };
  const auto ranks = fork_ranks(2, std::chrono::seconds(60), [&](Ranks& mine) {
    (void)step(mine);
    return Exit::ok;
  });
  EXPECT_EQ(step(*ranks), std::pair(std::size_t{15}, 2));
  share_cores(1);
}

}  // namespace
}  // namespace cudp
