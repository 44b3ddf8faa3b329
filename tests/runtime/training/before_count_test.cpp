// What is refused before a private number of examples is released: a noise multiplier that some
// number does not allow, whatever lies between the numbers that are tried.
#include "runtime/training/before_count.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/prepare.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

struct CountedPlan {
  std::string method = "dpsgd";
  double epsilon = 3.0;
  std::int64_t batch = 16;
  std::optional<std::int64_t> epochs = 1;
  std::optional<std::int64_t> steps = {};
  privacy::AccountantKind accountant = privacy::AccountantKind::rdp;
};

/// Logistic regression on examples whose number is private.
Experiment counted_experiment(const CountedPlan& p, double sigma) {
  Experiment e;
  e.config.method = p.method;
  e.config.epsilon = p.epsilon;
  e.config.delta = 1e-5;
  e.config.batch = p.batch;
  e.config.epochs = p.epochs;
  e.config.steps = p.steps;
  e.config.accountant = p.accountant;
  e.config.sigma = sigma;
  if (p.method == "adp-sgd") e.config.schedule = ScheduleKind::cosine;
  e.data.train = cases::examples_for(cases::kCases[0], 8);
  e.network = cases::network_of(cases::kCases[0]);
  e.backend = choose_backend(Device::cpu);
  return e;
}

privacy::Ledger counted_ledger(const Experiment& e) {
  privacy::Ledger ledger;
  ledger.count_first(*count_split(e.config, e.data));
  return ledger;
}

/// Whether the settings are refused before the count.
bool is_refused_before(const Experiment& e) {
  const privacy::Ledger ledger = counted_ledger(e);
  try {
    check_before_count(e, ledger.split()->sigma, ledger);
    return false;
  } catch (const BudgetError&) {
    return true;
  }
}

/// Whether the budget refuses them once the count is known, as Training::begin plans.
bool is_refused_after(const Experiment& e, double count) {
  const privacy::Ledger ledger = counted_ledger(e);
  const TrainingSize size{count, ledger.split()->sigma, 1};
  TrainConfig config = e.config;
  choose_for_table(config, size, e.data.train, e.network);
  try {
    method_entry(config.method)
        .make(method_context(config, e.network, size, e.backend.arithmetic(e.network), ledger));
    return false;
  } catch (const BudgetError&) {
    return true;
  } catch (const std::logic_error&) {
    return true;
  }
}

/// Numbers at which an epoch has a step more, their neighbours, and some of all sizes.
std::vector<double> counts_for(std::int64_t batch, int epochs) {
  std::vector<double> all;
  const auto b = static_cast<double>(batch);
  for (int k = 1; k <= epochs; ++k)
    for (const double move : {-1.0, 0.0, 1.0})
      if (const double count = std::ceil((k - 0.5) * b) + move; count >= b) all.push_back(count);
  all.push_back(b);
  for (double count = b; count < 4000.0 * b; count = std::floor(count * 1.7) + 1.0)
    all.push_back(count);
  return all;
}

/// The least noise multiplier that is not refused before the count, to a part in 100.
double least_sigma(const CountedPlan& p, double low, double high) {
  EXPECT_TRUE(is_refused_before(counted_experiment(p, low))) << p.method;
  EXPECT_FALSE(is_refused_before(counted_experiment(p, high))) << p.method;
  while (high > low * 1.01) {
    const double middle = std::sqrt(low * high);
    (is_refused_before(counted_experiment(p, middle)) ? low : high) = middle;
  }
  return high;
}

/// The refusal before is as strict as it must be for no count to be refused after it, and not much
/// stricter.
void expect_exact(const CountedPlan& p, double low, double high, int epochs = 40) {
  const double sigma = least_sigma(p, low, high);
  const Experiment enough = counted_experiment(p, sigma);
  const Experiment less = counted_experiment(p, sigma * 0.97);
  int refused = 0;
  for (const double count : counts_for(p.batch, epochs)) {
    EXPECT_FALSE(is_refused_after(enough, count)) << p.method << " " << sigma << " at " << count;
    refused += is_refused_after(less, count) ? 1 : 0;
  }
  EXPECT_GT(refused, 0) << p.method << " " << sigma;
}

TEST(BeforeCount, ANoiseMultiplierThatIsKeptIsEnoughForEveryCount) {
  for (const std::int64_t epochs : {1, 7}) expect_exact({.epochs = epochs}, 0.3, 50.0);
  expect_exact({.epochs = {}, .steps = 30}, 0.3, 50.0);
  expect_exact({.batch = 1, .epochs = 2}, 0.3, 50.0);
  for (const char* const method : {"dpsgd-decay", "adp-sgd", "dpsgd-quantile"})
    expect_exact({.method = method, .epochs = 3}, 0.3, 20.0, 20);
  // The usual accountant needs a little less noise.
  const CountedPlan usual{.epochs = 7, .accountant = privacy::AccountantKind::pld};
  const double sigma = least_sigma({.epochs = 7}, 0.3, 50.0);
  EXPECT_FALSE(is_refused_before(counted_experiment(usual, sigma)));
  for (const double count : counts_for(16, 4))
    EXPECT_FALSE(is_refused_after(counted_experiment(usual, sigma), count)) << count;
  EXPECT_TRUE(is_refused_before(counted_experiment(usual, 0.8 * sigma)));
}

/// With little noise more steps of a lower rate can cost more than one step of all examples: the
/// worst count is none of the batch, twice and four times it, which were tried at first.
TEST(BeforeCount, TheWorstCountMayLieBetween) {
  const CountedPlan p{.epsilon = 30.0};
  const double sigma = least_sigma(p, 0.1, 10.0);
  const Experiment less = counted_experiment(p, sigma * 0.985);
  bool of_powers = false, of_others = false;
  for (double batches = 1.0; batches <= 4096.0; batches *= 2.0)
    of_powers = of_powers || is_refused_after(less, batches * 16.0);
  for (const double count : counts_for(16, 40))
    of_others = of_others || is_refused_after(less, count);
  EXPECT_FALSE(of_powers);
  EXPECT_TRUE(of_others);
  expect_exact(p, 0.1, 10.0);
}

/// What the count refuses, the batch aside, where the noise is worked out from it: nothing.
TEST(BeforeCount, WithoutANoiseMultiplierNoCountIsRefusedByTheBudget) {
  for (const char* const method : {"dpsgd", "dpsgd-decay", "adp-sgd", "dpsgd-quantile", "adaclip"})
    for (const double epsilon : {0.1, 30.0}) {
      Experiment e = counted_experiment({.method = method, .epsilon = epsilon, .epochs = 2}, 1.0);
      e.config.sigma.reset();
      EXPECT_FALSE(is_refused_before(e));
      for (const double count : {16.0, 17.0, 24.0, 40.0, 1e3, 1e5})
        EXPECT_FALSE(is_refused_after(e, count)) << method << " " << epsilon << " at " << count;
    }
}

/// The rule for tables chooses batch and epochs by the count.
TEST(BeforeCount, OfATableThatChoosesItsBatchEveryCountIsCovered) {
  const auto experiment = [](double sigma) {
    Experiment e = counted_experiment({.batch = 512, .epochs = 20}, sigma);
    RowLayout layout{.number_feature = {0, 1}, .codes = 1, .features = 5};
    e.data.train = Dataset{};
    e.data.train.shape = {1, 1, 5};
    e.data.train.classes = 2;
    e.data.train.layout = std::make_shared<const RowLayout>(std::move(layout));
    e.network =
        build_network(parse_model(builtin_model("logistic"), "logistic", 2), e.data.train.shape, 2);
    e.config.of<LeftOpen>().keys = {"batch", "epochs", "lr", "ema", "clip"};
    return e;
  };
  double low = 0.5, high = 20.0;
  ASSERT_TRUE(is_refused_before(experiment(low)));
  ASSERT_FALSE(is_refused_before(experiment(high)));
  while (high > low * 1.01) {
    const double middle = std::sqrt(low * high);
    (is_refused_before(experiment(middle)) ? low : high) = middle;
  }
  const Experiment enough = experiment(high), less = experiment(high * 0.93);
  int refused = 0;
  for (double count = 25.0; count < 1e7; count = std::floor(count * 1.004) + 1.0) {
    EXPECT_FALSE(is_refused_after(enough, count)) << high << " at " << count;
    refused += is_refused_after(less, count) ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cudp
