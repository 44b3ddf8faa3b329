// A whole method in one file, as runtime/README.md says how to add one, and a training by it.
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/config/option_rows.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/make_plan.hpp"
#include "runtime/methods/registry.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"

namespace cudp {
namespace {

struct ExampleOptions {
  double growth = 2.0;
};

/// DP-SGD whose step size grows by a factor over the training.
class Example final : public EngineMethod {
 public:
  explicit Example(const MethodContext& c)
      : EngineMethod(
            c, with_noise(c.config, plan_without_noise(c, {.clip_norm = c.config.clip_norm}))) {}

  StepRecipe recipe() const override {
    return {.draw = Poisson{plan().sampling_threshold},
            .contribution = ClippedGradient{config().clipping},
            .optimizer = optimizer_settings(config())};
  }
  StepScalars scalars(std::uint64_t t) const override {
    StepScalars s = schedule().at(t);
    const double share = static_cast<double>(t) / static_cast<double>(plan().steps);
    s.learning_rate *= static_cast<float>(std::pow(config().of<ExampleOptions>().growth, share));
    return s;
  }
};

MethodEntry example_method() {
  using namespace option_rows;
  MethodEntry entry;
  entry.name = "example";
  entry.options = {number("growth", "G", &ExampleOptions::growth, kMultiple,
                          "example: the last step size, as a multiple of the first")};
  entry.uses = engine_method_options();
  entry.uses.emplace_back("clip");
  entry.make = make_method<Example>;
  return entry;
}

TEST(ExampleMethod, IsMadeOfItsEntryAndTrains) {
  const MethodEntry entry = example_method();
  TrainConfig config;
  entry.options[0].set(config, 3.0, "--growth");
  config.sigma = 1.0;
  config.delta = 1e-5;
  config.batch = 16;
  config.epochs = 2;
  config.threads = 1;
  const cases::Case& linear = cases::kCases[0];
  cases::MethodTraining<> training(
      entry.make(cases::context_of(config, cases::network_of(linear), TrainingSize{64.0, 0.0})),
      cases::examples_for(linear, 64));
  const Method& method = *training.method;
  EXPECT_EQ(method.steps(), 8u);
  const std::vector<float> before = method.parameters();
  training.run(0, 8);
  EXPECT_NE(method.parameters(), before);
  const privacy::Ledger& ledger = training.budget.ledger();
  EXPECT_EQ(ledger.authorised_until(), 8u);
  const privacy::Promise promise = method.promise(ledger, 8);
  EXPECT_EQ(std::get<privacy::NoisySums>(promise.how).steps, 8u);
  EXPECT_EQ(promise.epsilon, method.epsilon());
}

}  // namespace
}  // namespace cudp
