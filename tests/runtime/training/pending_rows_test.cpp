// Rows of a training whose epsilon is worked out beside it: their order, and what the training
// thread pays for one.
#include "runtime/training/pending_rows.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/config/seeded_key.hpp"
#include "runtime/training/training.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

MetricsRow row_of(std::uint64_t step) { return {.step = step}; }

TEST(PendingRows, LeaveInOrderWhicheverIsKnownFirst) {
  PendingRows rows;
  std::promise<double> slow;
  rows.start([known = slow.get_future().share()] { return known.get(); });
  rows.add(row_of(1));
  std::promise<void> quick_is_done;
  rows.start([&] {
    quick_is_done.set_value();
    return 2.0;
  });
  rows.add(row_of(2));
  quick_is_done.get_future().wait();
  EXPECT_TRUE(rows.known().empty()) << "the second waits for the first";
  slow.set_value(1.0);
  const std::vector<MetricsRow> all = rows.all();
  ASSERT_EQ(all.size(), 2u);
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].step, i + 1);
    EXPECT_EQ(all[i].epsilon, static_cast<double>(i + 1));
  }
  EXPECT_TRUE(rows.all().empty());
}

TEST(PendingRows, WaitForTheirMetrics) {
  PendingRows rows;
  std::promise<Metrics> measured;
  rows.start([] { return 1.0; });
  rows.add(row_of(1), [known = measured.get_future().share()] { return known.get(); });
  EXPECT_FALSE(rows.empty());
  EXPECT_TRUE(rows.known().empty());
  measured.set_value({.values = {0.5}});
  const std::vector<MetricsRow> all = rows.all();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].test.values, std::vector<double>{0.5});
  EXPECT_TRUE(rows.empty());

  rows.start([] { return 1.0; });
  rows.add(row_of(2), []() -> Metrics { throw std::domain_error("no metrics"); });
  EXPECT_THROW((void)rows.all(), std::domain_error);
}

TEST(PendingRows, PassOnWhatAnAccountantThrows) {
  PendingRows rows;
  rows.start([]() -> double { throw std::domain_error("no epsilon"); });
  rows.add(row_of(1));
  EXPECT_THROW((void)rows.all(), std::domain_error);
}

TEST(PendingRows, HaveAnEpsilonThatWasStarted) {
  PendingRows rows;
  EXPECT_ANY_THROW(rows.add(row_of(1)));
  rows.start([] { return 1.0; });
  EXPECT_ANY_THROW(rows.start([] { return 1.0; }));
}

/// A thread is made for work only if all others are busy.
TEST(KeptThreads, AreUsedAgain) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  int calls = 0;
  {
    KeptThreads threads;
    const auto call_once = [&] {
      std::promise<void> done;
      threads.start([&] {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        ++calls;
        done.set_value();
      });
      done.get_future().wait();
    };
    for (int i = 0; i < 50; ++i) {
      call_once();
      // The thread is idle soon after it has told that it is done.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_LT(seen.size(), 25u);

    // Three that wait for one another need three threads.
    std::promise<void> first, second;
    std::promise<int> third;
    threads.start([&, go = second.get_future().share()] {
      go.wait();
      third.set_value(3);
    });
    threads.start([&, go = first.get_future().share()] {
      go.wait();
      second.set_value();
    });
    threads.start([&] { first.set_value(); });
    EXPECT_EQ(third.get_future().get(), 3);
    for (int i = 0; i < 20; ++i)
      threads.start([&] {
        const std::lock_guard lock(mutex);
        ++calls;
      });
  }
  EXPECT_EQ(calls, 70) << "the destructor waits for all of them";
}

/// An engine that does nothing.
class IdleEngine final : public Engine {
 public:
  void load(const Dataset&) override {}
  void set_state(const TrainState& s) override { state_ = s; }
  TrainState state() override { return state_; }
  void run(const StepRecipe&, std::uint64_t, std::span<const StepScalars>) override {}
  void measure_norms() override {}
  std::vector<float> norms() override { return {}; }
  std::vector<float> logits(const Dataset&) override { return {}; }
  PerExample per_example(std::span<const std::uint32_t>, bool) override { return {}; }
  std::vector<std::uint32_t> sampled(std::uint64_t) override { return {}; }
  Diagnostics diagnostics() override { return {}; }

 private:
  TrainState state_;
};

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Rows : TrainingObserver {
  std::vector<MetricsRow> heard;
  void measured(const std::vector<MetricsRow>& rows) override { heard.push_back(rows.back()); }
};

TEST(PendingRows, CostTheTrainingThreadLessThanAMillisecond) {
  constexpr std::uint64_t kEpochs = 30, kSteps = 64;
  const cases::Case& linear = cases::kCases[0];
  Experiment e;
  e.config.epsilon = 3.0;
  e.config.delta = 1e-5;
  e.config.batch = 16;
  e.config.epochs = kEpochs;
  e.config.seed = 1;
  e.config.precision = Precision::fp32;
  e.data.name = "examples";
  e.data.train = cases::examples_for(linear, 16 * kSteps);
  e.data.size_is_public = true;
  e.network = cases::network_of(linear);
  e.backend = choose_backend(Device::cpu);
  e.backend.make_engine = [](const Network&, const EngineSettings&) -> std::unique_ptr<Engine> {
    return std::make_unique<IdleEngine>();
  };
  Rows rows;
  const auto t = Training::begin(std::move(e), key_from_seed(1), rows);
  const double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  t->advance();
  const double of_thread = seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread;
  const double of_process = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process;
  RecordProperty("thread_us_an_epoch", std::to_string(1e6 * of_thread / kEpochs));
  std::cout << "an epoch: " << 1e3 * of_thread / kEpochs << " ms of the training thread, "
            << 1e3 * of_process / kEpochs << " ms of all\n";
  EXPECT_LT(of_thread / kEpochs, 1e-3);
  EXPECT_GT(of_process / kEpochs, 2e-3) << "else an accountant is no work, and this tests nothing";

  ASSERT_EQ(rows.heard.size(), kEpochs);
  for (std::uint64_t i = 0; i < kEpochs; ++i) {
    EXPECT_EQ(rows.heard[i].step, (i + 1) * kSteps);
    if (i > 0) {
      EXPECT_GT(rows.heard[i].epsilon, rows.heard[i - 1].epsilon);
    }
  }
  EXPECT_EQ(rows.heard.back().epsilon, t->method().spent(t->ledger(), kEpochs * kSteps, true)());
}

}  // namespace
}  // namespace cudp
