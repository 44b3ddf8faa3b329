// Trainings that are charged to budgets before they release anything.
#include "runtime/run/reservation.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/gate/release_observer.hpp"
#include "runtime/results/run_spending.hpp"
#include "runtime/run/run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Two classes of 600 examples with four features.
std::shared_ptr<const GivenArrays> two_classes() {
  constexpr std::size_t kRows = 600, kColumns = 4;
  auto x = std::make_shared<std::vector<float>>(kRows * kColumns);
  auto y = std::make_shared<std::vector<std::int64_t>>(kRows);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < kRows; ++i) {
    (*y)[i] = static_cast<std::int64_t>(random() % 2);
    for (std::size_t j = 0; j < kColumns; ++j)
      (*x)[i * kColumns + j] =
          static_cast<float>(random() % 1000) * 1e-3f + static_cast<float>((*y)[i]);
  }
  auto arrays = std::make_shared<GivenArrays>();
  arrays->train.x = {.name = "X",
                     .type = "<f4",
                     .shape = {kRows, kColumns},
                     .strides = {kColumns * 4, 4},
                     .data = reinterpret_cast<const std::byte*>(x->data()),
                     .owner = x};
  arrays->train.y = {.name = "y",
                     .type = "<i8",
                     .shape = {kRows},
                     .strides = {8},
                     .data = reinterpret_cast<const std::byte*>(y->data()),
                     .owner = y};
  return arrays;
}

struct Charged {
  std::string out;
  double epsilon = 1.0;
  std::vector<std::string> budgets;
  bool size_is_public = false;
  std::string method = "dpsgd";
  bool fresh_noise_allowed = false;
};

std::unique_ptr<Run> start_charged(const Charged& what, Reporter& reporter,
                                   ReleaseObserver* observer = nullptr,
                                   RunCaller* caller = nullptr) {
  Settings settings = {{"dataset", {std::string("rows.npz"), "test"}},
                       {"classes", {std::int64_t{2}, "test"}},
                       {"model", {std::string("logistic"), "test"}},
                       {"method", {what.method, "test"}},
                       {"delta", {1e-5, "test"}},
                       {"device", {std::string("cpu"), "test"}},
                       {"out", {what.out, "test"}}};
  if (what.method != "sgd") settings["epsilon"] = {what.epsilon, "test"};
  if (what.fresh_noise_allowed) settings["fresh-noise-allowed"] = {true, "test"};
  if (what.method == "dpsgd" || what.method == "dpis" || what.method == "dpsgd-decay")
    settings.insert({{"epochs", {std::int64_t{3}, "test"}}, {"batch", {std::int64_t{60}, "test"}}});
  if (what.size_is_public) settings["size-is-public"] = {true, "test"};
  std::vector<std::string> notes;
  TrainConfig config = resolve_config(settings, notes);
  config.of<ArraysInUse>().arrays = two_classes();
  config.of<BudgetsInUse>().files = what.budgets;
  return start_run(config, reporter, observer, alone(), caller);
}

privacy::RunFilter read_budget(const fs::path& path) { return BudgetFile(path).filter(); }

/// Looks at a budget's file whenever something is released.
class BudgetReader final : public ReleaseObserver {
 public:
  explicit BudgetReader(fs::path path) : path_(std::move(path)) {}
  void on_release(const ReleasedValue&, std::span<std::byte>) override {
    const privacy::RunFilter filter = read_budget(path_);
    charged_always = charged_always && filter.runs().size() == 1;
    remaining.push_back(filter.remaining());
  }
  bool charged_always = true;
  std::vector<double> remaining;

 private:
  fs::path path_;
};

TEST(Reservation, IsDurableBeforeEachRelease) {
  for (const bool size_is_public : {true, false}) {
    const TemporaryFolder dir;
    const fs::path budget = dir / "budget";
    BudgetFile::create(budget, 3.0, 1e-5);
    BudgetReader reader(budget);
    Reporter reporter(Reporter::Silent{});
    const auto run =
        start_charged({.out = dir / "run", .budgets = {budget}, .size_is_public = size_is_public},
                      reporter, &reader);
    const std::size_t count = reader.remaining.size();
    EXPECT_EQ(count, size_is_public ? 0u : 1u);
    (void)train(*run);
    EXPECT_GT(reader.remaining.size(), count);
    EXPECT_TRUE(reader.charged_always);
    // A noisy number of examples is released on an estimate, which the plan replaces.
    const double last = read_budget(budget).remaining();
    EXPECT_LT(last, 0.9);
    EXPECT_GT(last, 0.5);
    if (!size_is_public) {
      EXPECT_LT(reader.remaining.front(), last);
    }
    EXPECT_EQ(reader.remaining.back(), last);
    EXPECT_NE(read_budget(budget).runs().front().note.find(fs::path(dir / "run").string()),
              std::string::npos);
  }
}

TEST(Reservation, ATrainingThatDoesNotFitReleasesNothing) {
  const TemporaryFolder dir;
  const fs::path small = dir / "small", large = dir / "large";
  BudgetFile::create(small, 0.5, 1e-5);
  BudgetFile::create(large, 3.0, 1e-5);
  for (const bool size_is_public : {true, false}) {
    BudgetReader reader(small);
    Reporter reporter(Reporter::Silent{});
    try {
      (void)start_charged(
          {.out = dir / "run", .budgets = {large, small}, .size_is_public = size_is_public},
          reporter, &reader);
      FAIL() << "the training was not refused";
    } catch (const BudgetError& e) {
      const std::string line = e.what();
      EXPECT_NE(line.find("100 % is left: about epsilon 0.4"), std::string::npos) << line;
      EXPECT_EQ(line.find("was released"), std::string::npos) << line;
    }
    EXPECT_TRUE(reader.remaining.empty());
    EXPECT_FALSE(fs::exists(dir / "run"));
    EXPECT_EQ(read_budget(small).remaining(), 1.0);
    EXPECT_EQ(read_budget(large).remaining(), 1.0);
  }
}

TEST(Reservation, ChargesEveryBudgetOnce) {
  const TemporaryFolder dir;
  const std::string outer = dir / "outer", inner = dir / "inner";
  BudgetFile::create(outer, 6.0, 1e-5);
  BudgetFile::create(inner, 3.0, 1e-5);
  Reporter reporter(Reporter::Silent{});
  (void)train(*start_charged({.out = dir / "run", .budgets = {outer, inner, outer}}, reporter));
  EXPECT_EQ(read_budget(outer).runs().size(), 1u);
  EXPECT_EQ(read_budget(inner).runs().size(), 1u);
  EXPECT_LT(read_budget(inner).remaining(), read_budget(outer).remaining());
}

TEST(Reservation, RefusesATrainingWithoutPrivacyAndABudgetThatIsGone) {
  const TemporaryFolder dir;
  const std::string budget = dir / "budget";
  BudgetFile::create(budget, 3.0, 1e-5);
  Reporter reporter(Reporter::Silent{});
  EXPECT_THROW(
      (void)start_charged({.out = dir / "run", .budgets = {budget}, .method = "sgd"}, reporter),
      BudgetError);
  EXPECT_THROW((void)start_charged({.out = dir / "run", .budgets = {dir / "none"}}, reporter),
               BudgetError);
  write_atomically(budget, "cudp-budget 1\n");
  EXPECT_THROW((void)start_charged({.out = dir / "run", .budgets = {budget}}, reporter),
               BudgetError);
  EXPECT_FALSE(fs::exists(dir / "run"));
}

TEST(Reservation, ABudgetKeepsItsEpsilonAndDelta) {
  const TemporaryFolder dir;
  const fs::path budget = dir / "budget";
  BudgetFile::create(budget, 3.0, 1e-5);
  BudgetFile::create(budget, 3.0, 1e-5);
  EXPECT_THROW(BudgetFile::create(budget, 4.0, 1e-5), InputError);
  EXPECT_THROW(BudgetFile::create(dir / "other", 0.0, 1e-5), InputError);
}

TEST(Reservation, MethodsOfAllKindsAreCharged) {
  for (const std::string method : {"dp-agd", "dpis", "objpert", "outpert", "privgene"}) {
    const TemporaryFolder dir;
    const std::string budget = dir / "budget";
    BudgetFile::create(budget, 20.0, 1e-2);
    Reporter reporter(Reporter::Silent{});
    SCOPED_TRACE(method);
    const auto run = start_charged(
        {.out = dir / "run", .budgets = {budget}, .size_is_public = true, .method = method},
        reporter);
    EXPECT_LT(read_budget(budget).remaining(), 1.0) << method;
    EXPECT_EQ(read_budget(budget).runs().size(), 1u) << method;
  }
}

/// The certificate of a run in progress may list the releases so far, and not those to come.
TEST(Reservation, ARunInProgressCountsByItsEpsilonUnlessAllIsPlanned) {
  for (const std::string method : {"dpis", "dpsgd"}) {
    const TemporaryFolder dir;
    Reporter reporter(Reporter::Silent{});
    const auto run = start_charged(
        {.out = dir / "run", .epsilon = 3.0, .budgets = {}, .method = method}, reporter);
    const std::string text = read_file(dir / "run/release/privacy.json");
    const privacy::RunSpending spending =
        spending_of(nlohmann::json::parse(text), verify::read_stated_numbers(text), "run");
    const bool planned = method == "dpsgd";
    EXPECT_EQ(std::holds_alternative<privacy::ChosenRun>(spending.run), planned) << method;
    EXPECT_EQ(std::holds_alternative<privacy::StatedRun>(spending.run), !planned) << method;
  }
}

/// A filter admits the releases of such a run one by one, so that its plan lists none of them.
TEST(Reservation, ARunWhoseReleasesAFilterAdmitsIsChargedWhole) {
  for (const bool size_is_public : {false, true}) {
    SCOPED_TRACE(size_is_public);
    const TemporaryFolder dir;
    Reporter reporter(Reporter::Silent{});
    std::vector<double> left;
    for (const bool filtered : {false, true}) {
      const std::string budget = dir / (filtered ? "filtered" : "planned");
      BudgetFile::create(budget, 6.0, 1e-4);
      const std::string out = dir / (filtered ? "filtered-run" : "planned-run");
      const auto run = start_charged({.out = out,
                                      .budgets = {budget},
                                      .size_is_public = size_is_public,
                                      .method = "dpsgd-decay",
                                      .fresh_noise_allowed = filtered},
                                     reporter);
      left.push_back(read_budget(budget).remaining());
      const std::string text = read_file(fs::path(out) / "release/privacy.json");
      const privacy::RunSpending spending =
          spending_of(nlohmann::json::parse(text), verify::read_stated_numbers(text), "run");
      EXPECT_EQ(std::holds_alternative<privacy::StatedRun>(spending.run), filtered);
    }
    EXPECT_LT(left[0], 0.99);
    EXPECT_LE(left[1], left[0]) << "the run was charged without its training";
  }
}

class StopsAtOnce final : public RunCaller {
 public:
  bool interrupts() override { return true; }
  void measured(const std::vector<MetricsRow>&) override {}
};

TEST(Reservation, IsNotRepeatedByAResumeUnlessTheKeyIsLost) {
  const TemporaryFolder dir;
  const std::string budget = dir / "budget", other = dir / "other";
  BudgetFile::create(budget, 8.0, 1e-4);
  BudgetFile::create(other, 8.0, 1e-4);
  Reporter reporter(Reporter::Silent{});
  StopsAtOnce caller;
  {
    const auto run =
        start_charged({.out = dir / "run", .budgets = {budget}}, reporter, nullptr, &caller);
    EXPECT_THROW((void)train(*run), Error);
  }
  const Settings resume = {{"resume", {std::string(dir / "run"), "test"}}};
  const ArraysInUse arrays{two_classes()};
  EXPECT_THROW((void)resume_run(resume, reporter, nullptr, alone(), nullptr, arrays, {{other}}),
               InputError);
  {
    const auto run = resume_run(resume, reporter, nullptr, alone(), &caller, arrays, {{budget}});
    EXPECT_EQ(read_budget(budget).runs().size(), 1u);
  }
  fs::remove(dir / "run/private/key");
  (void)resume_run(resume, reporter, nullptr, alone(), &caller, arrays);
  EXPECT_EQ(read_budget(budget).runs().size(), 2u);
}

TEST(Reservation, ThreadsTakeTurns) {
  const TemporaryFolder dir;
  const fs::path budget = dir / "budget";
  BudgetFile::create(budget, 3.0, 1e-5);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        BudgetFile file(budget);
        ASSERT_TRUE(file.filter().charge({.divergence = 1e-4}, "one"));
        file.save();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_budget(budget).runs().size(), 100u);
}

}  // namespace
}  // namespace cudp
