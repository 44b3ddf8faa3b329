#include "runtime/methods/sgd.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/device/backend.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/temporary_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

/// One step over all examples, some of whose gradients are far longer than the first bound, is that
/// of their mean.
TEST(Sgd, ClipsNothingAndAddsNoNoise) {
  const cases::Case& linear = cases::kCases[0];
  const Network network = cases::network_of(linear);
  Dataset data = cases::examples_for(linear, 40);
  for (std::size_t j = 0; j < 26; ++j) data.floats[j] *= 5000.0f;
  TrainConfig config;
  config.method = "sgd";
  config.batch = 40;
  config.epochs.reset();
  config.steps = 1;
  config.lr = 1.0;
  config.optimizer = OptimizerKind::sgd;
  config.threads = 1;
  Sgd method(cases::context_of(config, network, TrainingSize{40.0, 0.0}));
  PrivacyBudget budget({}, [](const privacy::Ledger&) {});
  const Backend cpu = choose_backend(Device::cpu);
  method.start({.train = data, .backend = cpu, .key = key_from_seed(1)}, budget);
  TrainState start;
  start.parameters = method.parameters();
  ASSERT_EQ(method.train(budget, 0, 1), 1u);
  const std::vector<float> after = method.parameters();

  const auto engine = make_cpu_engine(network, {});
  engine->load(data);
  engine->set_state(start);
  std::vector<std::uint32_t> all(40);
  for (std::uint32_t i = 0; i < 40; ++i) all[i] = i;
  const PerExample e = engine->per_example(all, true);
  for (std::size_t j = 0; j < after.size(); ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 40; ++i)
      sum += static_cast<double>(e.gradients[i * after.size() + j]);
    const double expected = static_cast<double>(start.parameters[j]) - sum / 40.0;
    EXPECT_NEAR(after[j], expected, 1e-5 * (1.0 + std::fabs(expected))) << j;
  }
  EXPECT_TRUE(budget.ledger().releases().empty());
  EXPECT_TRUE(std::isinf(method.epsilon()));
}

TEST(CliSgd, ReleasesNothingButANote) {
  const TemporaryFolder folder;
  const SmallTable table = write_small_table(folder, 400);
  const std::vector<std::string> training = {
      "train",    "--dataset", table.table, "--schema", table.schema,  "--test-data",
      table.test, "--method",  "sgd",       "--batch",  "64",          "--steps",
      "60",       "--quiet",   "--json",    "--out",    folder / "run"};
  const Finished f = run_cudp(folder, training);
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json result = Json::parse(f.out);
  EXPECT_TRUE(result["epsilon"].is_null());
  EXPECT_EQ(result["for_release"], false);
  std::vector<std::string> released;
  for (const auto& file : fs::directory_iterator(folder / "run/release"))
    released.push_back(file.path().filename().string());
  EXPECT_EQ(released, std::vector<std::string>{"NO-PRIVACY.txt"});
  EXPECT_TRUE(fs::exists(folder / "run/private/model.safetensors"));
  EXPECT_TRUE(fs::exists(folder / "run/private/config.toml"));
  const Finished eval = run_cudp(folder, {"eval", folder / "run", "--dataset", table.test,
                                          "--schema", table.schema, "--json"});
  ASSERT_EQ(eval.exit, 0) << eval.err;
  EXPECT_GT(Json::parse(eval.out)["test_accuracy"], 0.7);
  // A finished run says the same again.
  const Finished again = run_cudp(folder, {"train", "--resume", folder / "run", "--quiet"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_NE(again.out.find("trained without privacy"), std::string::npos) << again.out;

  std::vector<std::string> with_budget = training;
  with_budget.back() = folder / "no";
  with_budget.insert(with_budget.end(), {"--epsilon", "3"});
  const Finished refused = run_cudp(folder, with_budget);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("--epsilon: expected none with --method sgd"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(fs::exists(folder / "no"));
}

}  // namespace
}  // namespace cudp
