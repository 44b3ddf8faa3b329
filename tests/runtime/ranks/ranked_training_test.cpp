// Trainings that ranks share: what is compared before anything is written, and what a failing disk
// stops.
#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/follow.hpp"
#include "runtime/training/training.hpp"
#include "tests/support/thread_ranks.hpp"

namespace cudp {
namespace {

TEST(RankedTraining, AnotherBitOfTheModelIsFoundAndNamed) {
  for (const int odd : {0, 1, 3}) {  // 0: none
    std::vector<float> norms;
    const auto reasons = try_on_ranks(4, [&](Ranks& ranks) {
      MethodState mine{.numbers = {{"step_size_sum", 0.5}},
                       .arrays = {{"parameters", std::vector<float>(1000, 0.25f)},
                                  {"norms", {static_cast<float>(ranks.rank())}}}};
      if (ranks.rank() == 2) mine.arrays.pop_back();  // it has no examples
      if (odd != 0 && ranks.rank() == odd) {
        float& one = mine.arrays[0].second[613];
        one = std::bit_cast<float>(std::bit_cast<std::uint32_t>(one) ^ 1u);
      }
      const MethodState all = joined(mine, ranks);
      if (ranks.leads()) norms = all.array("norms");
    });
    for (const std::string& reason : reasons) {
      const bool named = reason.find("rank " + std::to_string(odd) +
                                     " has another model than rank 0") != std::string::npos;
      EXPECT_TRUE(odd == 0 ? reason.empty() : named) << reason;
    }
    if (odd == 0) {
      EXPECT_EQ(norms, (std::vector<float>{0.0f, 1.0f, 3.0f}));
    }
  }
}

/// A short training on built-in images.
TrainConfig small_training() {
  TrainConfig c;
  c.dataset = "glyphs";
  c.model = "logistic";
  c.epsilon = 3.0;
  c.delta = 1e-5;
  c.epochs = 1;
  c.batch = 256;
  c.seed = 3;
  c.threads = 1;
  c.device = Device::cpu;
  return c;
}

TEST(RankedTraining, OtherSettingsAreFoundAndNamed) {
  const auto reasons = try_on_ranks(3, [](Ranks& ranks) {
    TrainConfig c = small_training();
    if (ranks.rank() == 2) c.lr = 0.125;
    Reporter silent(Reporter::Silent{});
    const Experiment e = prepare(c, silent, "", {}, ranks);
    if (ranks.leads()) return check_same_facts(e, key_from_seed(3));
    send_facts(e, key_from_seed(3));
    std::int64_t one = 1;
    ranks.sum("what does not come", {&one, 1});
  });
  EXPECT_EQ(reasons[0], "rank 2: expected \"lr = 0.5\", found \"lr = 0.125\", as rank 0 has it");
}

/// Of ranks with other rows no more is said than that: neither how many there are nor a code of it,
/// so that the refusal is the same on neighbouring data.
TEST(RankedTraining, OtherRowsAreRefusedInTheSameWordsWhateverTheyAre) {
  const auto refusal = [](std::size_t first, std::size_t second) {
    return try_on_ranks(2, [&](Ranks& ranks) {
      Reporter silent(Reporter::Silent{});
      Experiment e = prepare(small_training(), silent, "", {}, ranks);
      e.data.train.whole = ranks.leads() ? first : second;
      if (ranks.leads()) return check_same_facts(e, key_from_seed(3));
      send_facts(e, key_from_seed(3));
      std::int64_t one = 1;
      if (first != second) ranks.sum("what does not come", {&one, 1});
    })[0];
  };
  EXPECT_EQ(refusal(2000, 1999), "rank 1: expected the rows of rank 0, found others");
  EXPECT_EQ(refusal(2000, 1999), refusal(1999, 1998));
  EXPECT_EQ(refusal(2000, 2000), "");
}

/// Rank 0 leads, the others follow: what they have at the end.
TEST(RankedTraining, FollowersHaveTheModelOfTheLeader) {
  const auto train = [](Ranks& ranks) {
    Reporter silent(Reporter::Silent{});
    TrainConfig c = small_training();
    c.method = "dpis";
    c.epochs.reset();
    c.steps = 6;
    c.accountant = privacy::AccountantKind::rdp;
    TrainingObserver nobody;
    const auto training =
        Training::begin(prepare(c, silent, "", {}, ranks), SharedKey(key_from_seed(3)), nobody);
    if (ranks.leads()) {
      training->advance();
      announce(ranks, {.kind = RankCommand::Kind::stop});
    } else {
      for (RankCommand o = next_command(ranks); o.kind != RankCommand::Kind::stop;
           o = next_command(ranks))
        training->follow(o);
    }
    EXPECT_EQ(training->step(), 6u);
    return training->method().parameters();
  };
  const std::vector<float> want = train(alone());
  std::vector<std::vector<float>> got(3);
  on_ranks(3, [&](Ranks& ranks) { got[static_cast<std::size_t>(ranks.rank())] = train(ranks); });
  for (const std::vector<float>& parameters : got) EXPECT_TRUE(parameters == want);
}

/// Under a fresh key each rank measures the norms of its own range anew: the ranks have the model
/// of one process, whatever norms the state had.
TEST(RankedTraining, GoesOnUnderAFreshKeyAsOneProcessDoes) {
  TrainConfig c = small_training();
  c.method = "dpis";
  c.epochs.reset();
  c.steps = 7;
  c.checkpoint_every = 3;
  c.accountant = privacy::AccountantKind::rdp;
  Reporter silent(Reporter::Silent{});
  struct States : TrainingObserver {
    std::vector<TrainingState> all;
    void checkpoint_due(const Training& t) override { all.push_back(t.state()); }
  } states;
  Training::begin(prepare(c, silent), SharedKey(key_from_seed(3)), states)->advance();
  TrainingState state = states.all.at(1);
  ASSERT_EQ(state.step, 3u);
  const auto train = [&](Ranks& ranks) {
    Reporter quiet(Reporter::Silent{});
    TrainingObserver nobody;
    const auto training = Training::resume(prepare(c, quiet, "", {}, ranks),
                                           SharedKey(key_from_seed(4)), nobody, state, false);
    if (ranks.leads()) {
      training->charge_again();
      training->advance();
      announce(ranks, {.kind = RankCommand::Kind::stop});
    } else {
      for (RankCommand o = next_command(ranks); o.kind != RankCommand::Kind::stop;
           o = next_command(ranks))
        training->follow(o);
    }
    return training->method().parameters();
  };
  const std::vector<float> want = train(alone());
  for (auto& [name, array] : state.method.arrays)
    if (is_per_example(name)) std::ranges::fill(array, 0.5f);
  std::vector<std::vector<float>> got(3);
  on_ranks(3, [&](Ranks& ranks) { got[static_cast<std::size_t>(ranks.rank())] = train(ranks); });
  for (const std::vector<float>& parameters : got) EXPECT_TRUE(parameters == want);
}

/// A disk that is full from the second time on that something is charged.
class FullDisk final : public TrainingObserver {
 public:
  void charged(const privacy::Ledger&) override {
    if (++times_ > 1) throw Error("ledger: no space left on device");
  }

 private:
  int times_ = 0;
};

TEST(RankedTraining, WithoutADurableLedgerNobodyMakesAStep) {
  std::vector<std::uint64_t> steps(3, 99);
  const auto reasons = try_on_ranks(3, [&](Ranks& ranks) {
    Reporter silent(Reporter::Silent{});
    Experiment e = prepare(small_training(), silent, "", {}, ranks);
    FullDisk full;
    TrainingObserver nobody;
    TrainingObserver& observer = ranks.leads() ? full : nobody;
    const auto training = Training::begin(std::move(e), SharedKey(key_from_seed(3)), observer);
    const std::vector<float> before = training->method().parameters();
    const auto note = [&] {
      steps[static_cast<std::size_t>(ranks.rank())] =
          training->step() + (training->method().parameters() == before ? 0 : 1000);
    };
    try {
      if (ranks.leads()) training->advance();
      for (;;) training->follow(next_command(ranks));
    } catch (const Error& reason) {
      note();
      ranks.abort(reason.what(), reason.code());
      throw;
    }
  });
  for (const std::string& reason : reasons) EXPECT_EQ(reason, "ledger: no space left on device");
  for (const std::uint64_t done : steps) EXPECT_EQ(done, 0u);
}

}  // namespace
}  // namespace cudp
