// A training by itself, in memory alone: what its observer hears, and where it can be taken up
// again.
#include "runtime/training/training.hpp"

#include <gtest/gtest.h>

#include "privacy/certificate/certificate.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/print.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kSteps = 12;

/// Logistic regression on 64 examples, half of them tested on again.
Experiment experiment() {
  const cases::Case& linear = cases::kCases[0];
  Experiment e;
  e.config.epsilon = 3.0;
  e.config.delta = 1e-5;
  e.config.batch = 16;
  e.config.epochs.reset();
  e.config.steps = kSteps;
  e.config.threads = 1;
  e.config.checkpoint_every = 5;
  e.config.seed = 1;
  e.config.precision = Precision::fp32;
  e.data.name = "examples";
  e.data.train = cases::examples_for(linear, 64);
  e.data.test = cases::examples_for(linear, 32);
  e.data.size_is_public = true;
  e.network = cases::network_of(linear);
  e.backend = choose_backend(Device::cpu);
  return e;
}

/// Writes down what it hears.
struct Listener : TrainingObserver {
  std::vector<TrainingState> checkpoints;
  std::vector<std::uint64_t> charged_at;  ///< releases of the ledger, each time
  std::size_t rows = 0;
  std::uint64_t progress = 0;
  bool opened = false;
  bool planned_once = false;
  std::uint64_t stop_after = kSteps;  ///< steps

  void charged(const privacy::Ledger& ledger) override {
    std::uint64_t count = 0;
    for (const privacy::Release& r : ledger.releases()) count += r.count;
    charged_at.push_back(count);
  }
  void opens(const Training&) override { opened = true; }
  void planned(const Training&) override { planned_once = true; }
  void checkpoint_due(const Training& t) override { checkpoints.push_back(t.state()); }
  void measured(const std::vector<MetricsRow>& all) override { rows = all.size(); }
  void progressed(const Progress& p) override {
    // Nothing is drawn before it is charged.
    if (!charged_at.empty()) {
      EXPECT_LE(p.step, charged_at.back());
    }
    progress = p.step;
  }
  bool interrupts() override { return progress >= stop_after; }
};

std::vector<float> trained(Listener& listener) {
  const auto t = Training::begin(experiment(), key_from_seed(1), listener);
  t->advance();
  EXPECT_TRUE(t->is_finished());
  return t->method().parameters();
}

TEST(Training, EndsWithAModelRowsAndACertificate) {
  Listener listener;
  const auto t = Training::begin(experiment(), key_from_seed(1), listener);
  EXPECT_TRUE(listener.opened);
  EXPECT_TRUE(listener.planned_once);
  EXPECT_EQ(t->last_step(), kSteps);
  EXPECT_FALSE(t->is_finished());
  EXPECT_EQ(t->plan_certificate().status, privacy::Certificate::Status::not_finished);
  EXPECT_EQ(t->plan_certificate().promise.epsilon, t->method().epsilon());
  const std::vector<float> before = t->method().parameters();

  t->advance();
  EXPECT_TRUE(t->is_finished());
  EXPECT_EQ(listener.progress, kSteps);
  EXPECT_EQ(listener.rows, t->metrics().size());
  EXPECT_EQ(t->metrics().back().step, kSteps);
  EXPECT_GT(t->metrics().back().test.accuracy(), 0.0);
  EXPECT_NE(t->method().parameters(), before);
  EXPECT_EQ(t->model().parameters, t->method().parameters());
  const privacy::Certificate c = t->certificate();
  EXPECT_EQ(c.status, privacy::Certificate::Status::finished);
  EXPECT_LE(c.promise.epsilon, 3.0);
  EXPECT_EQ(std::get<privacy::NoisySums>(c.promise.how).steps, kSteps);
  EXPECT_EQ(c.size.value, 64.0);
}

TEST(Training, GoesOnFromEveryCheckpointToTheSameEnd) {
  Listener whole;
  const std::vector<float> end = trained(whole);
  ASSERT_EQ(whole.checkpoints.size(), 3u);  // after steps 0, 5, 10
  for (const TrainingState& state : whole.checkpoints) {
    Listener listener;
    const auto t = Training::resume(experiment(), key_from_seed(1), listener, state, true);
    EXPECT_EQ(t->step(), state.step);
    t->advance();
    EXPECT_EQ(t->method().parameters(), end) << state.step;
    EXPECT_EQ(t->ledger().releases(), whole.checkpoints.back().ledger.releases());
  }
}

TEST(Training, StopsWhereItsObserverSays) {
  Listener whole;
  const std::vector<float> end = trained(whole);
  Listener listener;
  listener.stop_after = 3;
  const auto t = Training::begin(experiment(), key_from_seed(1), listener);
  t->advance();
  EXPECT_FALSE(t->is_finished());
  EXPECT_LT(t->step(), kSteps);
  EXPECT_EQ(listener.checkpoints.back().step, t->step());
  listener.stop_after = kSteps;
  t->advance();
  EXPECT_TRUE(t->is_finished());
  EXPECT_EQ(t->method().parameters(), end);
}

TEST(Training, PaysAgainUnderAKeyOfItsOwn) {
  Listener whole;
  const std::vector<float> end = trained(whole);
  const TrainingState& state = whole.checkpoints[1];
  Listener listener;
  const auto t = Training::resume(experiment(), key_from_seed(2), listener, state, false);
  EXPECT_THROW(t->advance(), Error) << "nothing was paid again";
  t->charge_again();
  EXPECT_LT(t->last_step(), kSteps) << "the budget was for all steps once";
  t->advance();
  EXPECT_TRUE(t->is_finished());
  EXPECT_NE(t->method().parameters(), end);
  EXPECT_LE(t->certificate().promise.epsilon, 3.0);
}

/// A private number of examples is released once; what a plan is refused for is heard with it.
TEST(Training, TellsOfARefusalOnceItHasCounted) {
  struct Refusals final : Listener {
    double size = 0.0;
    void refused(const Training& t, const Error&) override { size = t.size().value; }
  };
  Experiment e = experiment();
  e.data.size_is_public = false;
  e.config.batch = 4096;  // of more examples than there are
  Refusals listener;
  EXPECT_THROW(Training::begin(std::move(e), key_from_seed(1), listener), InputError);
  EXPECT_GT(listener.size, 0.0);
  EXPECT_FALSE(listener.planned_once);
  ASSERT_FALSE(listener.charged_at.empty());
  EXPECT_EQ(listener.charged_at.back(), 1u);
}

TEST(Training, DividesItsBudgetBeforeItCounts) {
  struct Ledgers final : Listener {
    std::vector<privacy::Ledger> ledgers;
    std::size_t before_counting = 0;
    void charged(const privacy::Ledger& ledger) override { ledgers.push_back(ledger); }
    void opens(const Training&) override { before_counting = ledgers.size(); }
  };
  Experiment e = experiment();
  e.data.size_is_public = false;
  Ledgers listener;
  const auto t = Training::begin(e, key_from_seed(1), listener);
  const privacy::CountSplit split = privacy::split_for_count(*e.config.epsilon, *e.config.delta, 1);
  ASSERT_EQ(listener.before_counting, 1u);
  ASSERT_GT(listener.ledgers.size(), 1u);
  for (const privacy::Ledger& ledger : listener.ledgers) EXPECT_EQ(ledger.split(), split);
  EXPECT_EQ(listener.ledgers[0].releases(),
            (std::vector<privacy::Release>{{privacy::Gaussian{split.sigma}, 1}}));
  EXPECT_EQ(t->method().epsilon(), *e.config.epsilon);
  EXPECT_EQ(t->method().delta(), *e.config.delta);
  // What no number of examples allows, and a sigma that few allow, is not paid for.
  for (const double sigma : {0.01, 0.1, 1.0}) {
    e.config.sigma = sigma;
    Ledgers refused;
    EXPECT_THROW(Training::begin(e, key_from_seed(1), refused), BudgetError);
    EXPECT_TRUE(refused.ledgers.empty()) << sigma;
  }
}

TEST(Training, OfAPublicSizeIsRefusedBeforeAnythingIsCharged) {
  Experiment e = experiment();
  e.config.epsilon = 1e-9;
  Listener listener;
  EXPECT_THROW(Training::begin(std::move(e), key_from_seed(1), listener), BudgetError);
  EXPECT_TRUE(listener.charged_at.empty());
}

/// Whoever sees secrets has the proof of a seed, but of some run's: a training asks for its own.
TEST(Training, ForReleaseTakesNoObserver) {
  const TranscriptMemory memory;
  Transcript transcript(SeededKey(experiment().config), memory.file());
  Listener listener;
  EXPECT_NO_THROW(Training::begin(experiment(), key_from_seed(1), listener, &transcript));
  Experiment for_release = experiment();
  for_release.config.seed.reset();
  EXPECT_THROW(Training::begin(std::move(for_release), key_from_seed(1), listener, &transcript),
               InputError);
  EXPECT_EQ(memory.content(), "");  // no run began before it
}

}  // namespace
}  // namespace cudp
