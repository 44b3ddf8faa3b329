// A noise multiplier that is computed while data are read is the one that the method asks for.
#include "runtime/training/plan_ahead.hpp"

#include <gtest/gtest.h>

#include "runtime/data/make_network.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/settings.hpp"

namespace cudp {
namespace {

TrainConfig settings_of(const std::string& preset) {
  std::vector<std::string> notes;
  Settings flags;
  flags.emplace("preset", Setting{preset, "--preset"});
  return resolve_config(flags, notes);
}

std::unique_ptr<Method> method_of(const TrainConfig& config, const std::string& model,
                                  const Shape& shape, int classes, double rows,
                                  const std::shared_ptr<privacy::AccountantMemo>& memo) {
  const Network network =
      make_network(std::string(builtin_model(model)), model, "", shape, classes);
  MethodContext context =
      method_context(config, network, {.value = rows}, {.norm_chains = 4, .norm_block = 32}, {});
  context.memo = memo;
  return method_entry(config.method).make(context);
}

TEST(PlanAhead, IsWhatTheMethodAsksFor) {
  struct Known {
    const char* preset;
    const char* model;
    Shape shape;
    int classes;
  };
  for (const Known& k :
       {Known{"mnist-cnn", "cnn", {.channels = 1, .height = 28, .width = 28}, 10},
        Known{"mnist-adaclip", "cnn", {.channels = 1, .height = 28, .width = 28}, 10},
        Known{"adult-logistic", "logistic", {.channels = 105, .height = 1, .width = 1}, 2}}) {
    SCOPED_TRACE(k.preset);
    const TrainConfig config = settings_of(k.preset);
    const auto rows = static_cast<double>(published_rows(config.dataset));
    ASSERT_GT(rows, 0.0);
    const auto memo = std::make_shared<privacy::AccountantMemo>();
    const auto timings = std::make_shared<Timings>();
    const std::shared_future<void> ahead = plan_ahead(config, memo, timings);
    ASSERT_TRUE(ahead.valid());
    ahead.wait();
    const std::size_t computed = memo->computations();
    EXPECT_EQ(computed, 2u) << "the noise multiplier, and its check";
    EXPECT_EQ(timings->beside().size(), 1u);
    const auto found = method_of(config, k.model, k.shape, k.classes, rows, memo);
    // Its description and its certificate need no more of the accountant.
    (void)found->epsilon();
    (void)found->describe();
    EXPECT_EQ(memo->computations(), computed);
    const auto own = method_of(config, k.model, k.shape, k.classes, rows, nullptr);
    EXPECT_EQ(found->outcome(1).sigma, own->outcome(1).sigma);
    EXPECT_EQ(found->epsilon(), own->epsilon());
    // Another number of rows is another plan.
    (void)method_of(config, k.model, k.shape, k.classes, rows - 1.0, memo);
    EXPECT_GT(memo->computations(), computed);
  }
}

/// A private number of rows is found by reading and released with noise: nothing is guessed.
TEST(PlanAhead, IsMadeForPublishedSetsOnly) {
  const auto memo = std::make_shared<privacy::AccountantMemo>();
  const auto timings = std::make_shared<Timings>();
  TrainConfig config = settings_of("mnist-cnn");
  config.dataset = "patients.csv";
  EXPECT_FALSE(plan_ahead(config, memo, timings).valid());
  config = settings_of("mnist-cnn");
  config.method = "dpis";
  EXPECT_FALSE(plan_ahead(config, memo, timings).valid());
  EXPECT_EQ(memo->computations(), 0u);
}

/// A refusal is the method's to report.
TEST(PlanAhead, ReportsNothing) {
  const auto memo = std::make_shared<privacy::AccountantMemo>();
  TrainConfig config = settings_of("mnist-cnn");
  config.batch = 1'000'000;
  const std::shared_future<void> ahead = plan_ahead(config, memo, std::make_shared<Timings>());
  ASSERT_TRUE(ahead.valid());
  EXPECT_NO_THROW(ahead.get());
}

}  // namespace
}  // namespace cudp
