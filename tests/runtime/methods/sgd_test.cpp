#include "runtime/methods/sgd.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/files.hpp"
#include "runtime/device/backend.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"
#include "tests/support/temporary_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kCount = 40;

const cases::Case& linear() { return cases::kCases[0]; }

/// Two have gradients far longer than sums are first bounded by.
Dataset examples_of_many_lengths() {
  Dataset data = cases::examples_for(linear(), kCount);
  for (std::size_t j = 0; j < 26; ++j) data.floats[j] *= 5000.0f;
  return data;
}

TrainConfig without_privacy() {
  TrainConfig config;
  config.method = "sgd";
  config.epochs.reset();
  config.threads = 1;
  return config;
}

/// One step over all examples, some of whose gradients are far longer than the first bound, is that
/// of their mean.
TEST(Sgd, ClipsNothingAndAddsNoNoise) {
  const Network network = cases::network_of(linear());
  const Dataset data = examples_of_many_lengths();
  TrainConfig config = without_privacy();
  config.batch = kCount;
  config.steps = 1;
  config.lr = 1.0;
  config.optimizer = OptimizerKind::sgd;
  cases::MethodTraining<Sgd> training(
      std::make_unique<Sgd>(cases::context_of(config, network, TrainingSize{double{kCount}, 0.0})),
      data);
  Sgd& method = *training.method;
  TrainState start;
  start.parameters = method.parameters();
  ASSERT_EQ(method.train(0, 1), 1u);
  const std::vector<float> after = method.parameters();

  const auto engine = make_cpu_engine(network, {});
  engine->load(data);
  engine->set_state(start);
  std::vector<std::uint32_t> all(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) all[i] = i;
  const PerExample e = engine->per_example(all, true);
  double longest = 0.0;
  for (const float square : e.squared_norms)
    longest = std::fmax(longest, std::sqrt(static_cast<double>(square)));
  for (std::size_t j = 0; j < after.size(); ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < kCount; ++i)
      sum += static_cast<double>(e.gradients[i * after.size() + j]);
    const double expected = static_cast<double>(start.parameters[j]) - sum / double{kCount};
    // Each example is rounded to the grid of a norm at most twice the longest.
    EXPECT_NEAR(after[j], expected, 1e-5 * (1.0 + std::fabs(expected)) + longest * 0x1p-20) << j;
  }
  EXPECT_TRUE(training.budget.ledger().releases().empty());
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

/// Its own settings do not declare a private size public for the next run.
TEST(CliSgd, LeavesNoDeclarationBehind) {
  const TemporaryFolder folder;
  const SmallTable table = write_small_table(folder, 200);
  const Finished f = run_cudp(
      folder, {"train", "--dataset", table.table, "--schema", table.schema, "--method", "sgd",
               "--batch", "64", "--steps", "5", "--quiet", "--out", folder / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(read_file(folder / "run/private/config.toml").find("size-is-public = false"),
            std::string::npos);
}

/// Every row of the first test set is the same but for its label. Of private test rows the owner
/// alone is told.
TEST(CliSgd, SaysWhenTheModelGuesses) {
  const TemporaryFolder folder;
  const SmallTable table = write_small_table(folder);
  std::string same = "x,y,colour,class\n";
  for (int i = 0; i < 50; ++i) same += "9,9,red,no\n9,9,red,yes\n";
  write_text(folder / "same.csv", same);
  const auto trained = [&](const std::string& test, const char* run, bool is_public) {
    std::vector<std::string> a = {"train",      "--dataset",   table.table, "--schema",
                                  table.schema, "--test-data", test,        "--method",
                                  "sgd",        "--batch",     "64",        "--epochs",
                                  "10",         "--out",       folder / run};
    if (is_public) a.emplace_back("--test-data-is-public");
    const Finished f = run_cudp(folder, a);
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.err;
  };
  const std::string line = "50.00 % of 2 classes is that of guessing";
  EXPECT_NE(trained(folder / "same.csv", "one", true).find(line), std::string::npos);
  EXPECT_EQ(trained(table.test, "other", true).find("guessing"), std::string::npos);
  EXPECT_EQ(trained(folder / "same.csv", "private", false).find("guessing"), std::string::npos);
  EXPECT_NE(read_file(folder / "private/private/log.txt").find("PRIVATE test accuracy " + line),
            std::string::npos);
}

/// A preset's budget does not count: there is none to share with features.
TEST(CliSgd, FeaturesThatAreReleasedNeedANoiseOfTheirOwn) {
  const TemporaryFolder folder;
  const Finished f = run_cudp(folder, {"train", "--preset", "mnist-adaclip", "--method", "sgd",
                                       "--dataset", "glyphs", "--out", folder / "run"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("--feature-sigma: expected a noise multiplier"), std::string::npos) << f.err;
}

/// Steps with long gradients are repeated one by one, so that nothing depends on how many are made
/// at a time.
TEST(Sgd, StepsAreTheSameOneByOneAndTogether) {
  const Network network = cases::network_of(linear());
  const Dataset data = examples_of_many_lengths();
  TrainConfig config = without_privacy();
  config.batch = 10;
  config.steps = 12;
  config.lr = 1e-3;
  const auto trained = [&](std::uint64_t at_once) {
    const cases::MethodTraining<Sgd> training(
        std::make_unique<Sgd>(
            cases::context_of(config, network, TrainingSize{double{kCount}, 0.0})),
        data);
    for (std::uint64_t t = 0; t < 12; t += at_once) training.method->train(t, t + at_once);
    return training.method->parameters();
  };
  const std::vector<float> whole = trained(12);
  EXPECT_EQ(trained(1), whole);
  EXPECT_EQ(trained(4), whole);
}

/// What a run with privacy released stands beside the accuracy without.
TEST(CliSgd, ShowsWhatPrivacyCosts) {
  const TemporaryFolder folder;
  const SmallTable table = write_small_table(folder, 400);
  const std::vector<std::string> common = {"train",
                                           "--dataset",
                                           table.table,
                                           "--schema",
                                           table.schema,
                                           "--test-data",
                                           table.test,
                                           "--batch",
                                           "64",
                                           "--steps",
                                           "20",
                                           "--quiet",
                                           "--size-is-public",
                                           "--test-data-is-public"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return run_cudp(folder, more);
  };
  const Finished private_run =
      run({"--epsilon", "3", "--delta", "1e-4", "--out", folder / "private"});
  ASSERT_EQ(private_run.exit, 0) << private_run.err;
  const Finished sgd =
      run({"--method", "sgd", "--compare-with", folder / "private", "--out", folder / "sgd"});
  ASSERT_EQ(sgd.exit, 0) << sgd.err;
  EXPECT_NE(sgd.out.find("with privacy"), std::string::npos) << sgd.out;
  const Finished json = run({"--method", "sgd", "--compare-with", folder / "private", "--json",
                             "--out", folder / "sgd2"});
  ASSERT_EQ(json.exit, 0) << json.err;
  const Json with = Json::parse(json.out)["compared_with"];
  const Json certificate = Json::parse(read_file(folder / "private/release/privacy.json"));
  EXPECT_EQ(with["epsilon"], certificate["epsilon"]);
  EXPECT_GT(with["test_accuracy"], 0.4);

  for (const std::string& wrong : {folder / "sgd", folder / "nothing"}) {
    const Finished refused =
        run({"--method", "sgd", "--compare-with", wrong, "--out", folder / "no"});
    EXPECT_EQ(refused.exit, 2);
    EXPECT_NE(refused.err.find("--compare-with: expected the folder of a finished run"),
              std::string::npos)
        << refused.err;
    EXPECT_FALSE(fs::exists(folder / "no"));
  }
  // A training that a tuning does not release is not shown either.
  const std::string training = folder / "tuning/private/runs/000001";
  fs::create_directories(folder / "tuning/private/runs");
  fs::rename(folder / "private", training);
  write_text(folder / "tuning/private/tuning.json", "{}");
  const Finished refused =
      run({"--method", "sgd", "--compare-with", training, "--out", folder / "no"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("found a training of a tuning"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(folder / "no"));
}

}  // namespace
}  // namespace cudp
