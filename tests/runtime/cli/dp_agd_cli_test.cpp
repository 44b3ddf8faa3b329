// DP-AGD from the command line to its certificate, and through crashes.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/filter.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/run/authenticator.hpp"
#include "tests/support/table_training.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

class CliDpAgd : public testing::Test {
 protected:
  std::vector<std::string> training(const std::string& out,
                                    const std::vector<std::string>& more = {}) const {
    return with(with(train_on(table_, folder_ / out),
                     args("--method dp-agd --size-is-public --epsilon 2 --splits 60 "
                          "--checkpoint-every 5")),
                more);
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  privacy::Ledger ledger_of(const std::string& run) const {
    return privacy::Ledger::from_text(
        read_authenticated(folder_ / (run + "/private/ledger")).content, run);
  }
  void expect_same_release(const std::string& a, const std::string& b) const {
    for (const char* name : {"model.safetensors", "privacy.json", "metrics.jsonl", "config.toml"})
      EXPECT_EQ(file(a + "/release/" + name), file(b + "/release/" + name)) << name;
  }
  /// Kills the run once its ledger holds some releases.
  void run_and_kill(const std::string& out, int after) const {
    CudpProcess process(folder_, training(out));
    const fs::path ledger = folder_ / (out + "/private/ledger");
    const auto lines = [&] {
      const std::string text = content_of(ledger);
      return std::count(text.begin(), text.end(), '\n');
    };
    const fs::path result = folder_ / (out + "/private/result.json");
    wait_until([&] { return fs::exists(result) || lines() >= after; });
    process.signal(SIGKILL);
    process.wait();
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(CliDpAgd, LearnsAndCertifies) {
  const Finished f = run_cudp(folder_, training("run"));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json result = Json::parse(f.out);
  const Json c = Json::parse(file("run/release/privacy.json"));
  EXPECT_GT(result["test_accuracy"], 0.7);
  EXPECT_EQ(c["method"], "dp-agd");
  EXPECT_EQ(c["epsilon"], 2.0);
  EXPECT_EQ(c["sampling"], "all examples");
  EXPECT_EQ(c["C"], 3.0);
  EXPECT_EQ(c["filter"]["kind"], "zcdp");
  EXPECT_EQ(c["seeded"], true);
  EXPECT_EQ(c["for_release"], false);
  // What it lists adds up, by the definitions, to what it says was spent, within the budget.
  double rho = 0.0;
  std::uint64_t releases = 0;
  std::uint64_t selections = 0;
  for (const Json& r : c["releases"]) {
    const auto count = r["count"].get<std::uint64_t>();
    releases += count;
    const bool gaussian = r["mechanism"] == "gaussian";
    if (!gaussian) {
      EXPECT_EQ(r["mechanism"], "bounded-range");
      selections += count;
    }
    const double x = r[gaussian ? "sigma" : "epsilon"].get<double>();
    rho += static_cast<double>(count) * (gaussian ? 0.5 / (x * x) : x * x / 8.0);
  }
  EXPECT_NEAR(rho, c["filter"]["rho_spent"].get<double>(), 1e-9 * rho);
  EXPECT_LE(rho, c["filter"]["rho"].get<double>());
  EXPECT_EQ(releases, result["releases"]);
  EXPECT_GE(selections, result["steps"].get<std::uint64_t>());
  EXPECT_FALSE(fs::exists(folder_ / "run/private/key"));

  const Finished eval = run_cudp(folder_, {"eval", folder_ / "run", "--dataset", table_.test,
                                           "--schema", table_.schema, "--json"});
  ASSERT_EQ(eval.exit, 0) << eval.err;
  EXPECT_EQ(Json::parse(eval.out)["test_accuracy"], result["test_accuracy"]);
}

TEST_F(CliDpAgd, EndsTheSameAfterCrashes) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  for (const int after : {3, 30, 61, 90}) {
    const std::string broken = "broken" + std::to_string(after);
    run_and_kill(broken, after);
    const Finished resumed =
        run_cudp(folder_, {"train", "--resume", folder_ / broken, "--quiet", "--json"});
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    expect_same_release(broken, "whole");
  }
}

TEST_F(CliDpAgd, ALostKeyIsPaidFor) {
  int attempts = 0;
  do {  // until a run is killed before it is complete
    ASSERT_LT(attempts++, 10);
    fs::remove_all(folder_ / "broken");
    run_and_kill("broken", 60);
  } while (fs::exists(folder_ / "broken/private/result.json"));
  ASSERT_TRUE(fs::remove(folder_ / "broken/private/key"));
  const auto before = ledger_of("broken").releases();
  const Finished resumed = run_cudp(folder_, {"train", "--resume", folder_ / "broken", "--json"});
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("paid for again"), std::string::npos);
  const privacy::Filter filter(ledger_of("broken"));  // within its budget
  EXPECT_GT(filter.ledger().releases().size(), before.size());
  EXPECT_EQ(Json::parse(file("broken/release/privacy.json"))["epsilon"], 2.0);
}

TEST_F(CliDpAgd, DoesNotDependOnThreads) {
  ASSERT_EQ(run_cudp(folder_, training("one")).exit, 0);
  ASSERT_EQ(run_cudp(folder_, training("three", {"--threads", "3"})).exit, 0);
  expect_same_release("one", "three");
}

TEST_F(CliDpAgd, TakesTheVariants) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--noisy-min", "laplace", "--conversion", "classical"},
        {"--budget-split", "epsilon", "--splits", "5"},
        {"--model", "svm", "--mini-batch", "200"}}) {
    const Finished f = run_cudp(folder_, training("run-" + more[1], more));
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_GT(Json::parse(f.out)["test_accuracy"], 0.6) << more[1];
  }
  const Json laplace = Json::parse(file("run-laplace/release/privacy.json"));
  EXPECT_LT(laplace["epsilon"], 2.0);
  EXPECT_EQ(laplace["arithmetic"], "proved for real numbers only");
  EXPECT_NE(laplace["not_for_release"].dump().find("noisy-min laplace"), std::string::npos);
  EXPECT_FALSE(Json::parse(file("run-epsilon/release/privacy.json")).contains("arithmetic"));
}

TEST_F(CliDpAgd, APrivateSizeIsPaidFor) {
  std::vector<std::string> a = training("run");
  a.erase(std::find(a.begin(), a.end(), "--size-is-public"));
  const Finished f = run_cudp(folder_, a);
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = Json::parse(file("run/release/privacy.json"));
  EXPECT_FALSE(c.contains("training_examples"));
  EXPECT_EQ(c["releases"][0]["sigma"], c["size_release"]["noise_std"]);
  // Speed, time and steps together tell the noisy size, not the real one.
  const Json told = Json::parse(f.out);
  const double size = told["examples_per_second"].get<double>() * told["seconds"].get<double>() /
                      told["steps"].get<double>();
  EXPECT_NEAR(size, c["size_release"]["noisy_size"].get<double>(), 1e-6 * size);
  EXPECT_GT(std::fabs(size - 613.0), 0.5);
}

TEST_F(CliDpAgd, RefusesWhatItDoesNotHave) {
  const auto refusal = [&](const std::vector<std::string>& more) {
    const Finished f = run_cudp(folder_, training("no", more));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "no"));
    return f.err;
  };
  EXPECT_NE(refusal({"--model", "mlp"}).find("--model: expected logistic or svm"),
            std::string::npos);
  EXPECT_NE(refusal({"--lr", "0.1"}).find("--lr: expected --method dpsgd"), std::string::npos);
  if (cuda_devices().empty()) {
    EXPECT_NE(refusal({"--device", "cuda"}).find("--device: expected a CUDA device"),
              std::string::npos);
  }
  EXPECT_NE(refusal({"--method", "dpsgd"}).find("--method dp-agd"), std::string::npos);
  EXPECT_NE(refusal({"--noisy-min", "cauchy"}).find("gumbel"), std::string::npos);
}

/// So small a share of the budget that no grid is left for the noise: known before anything is
/// released.
TEST_F(CliDpAgd, RefusesNoiseThatIsNoUse) {
  std::vector<std::string> arguments = training("no");
  std::ranges::replace(arguments, "60", "1e30");
  const Finished f = run_cudp(folder_, arguments);
  EXPECT_EQ(f.exit, 3) << f.err;
  EXPECT_NE(f.err.find("fewer --splits"), std::string::npos) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "no"));
  // So is that of a gradient which is measured again.
  arguments = training("no");
  arguments.insert(arguments.end(), {"--gamma", "1e-30"});
  const Finished again = run_cudp(folder_, arguments);
  EXPECT_EQ(again.exit, 3) << again.err;
  EXPECT_NE(again.err.find("a larger --gamma"), std::string::npos) << again.err;
  EXPECT_FALSE(fs::exists(folder_ / "no"));
}

}  // namespace
}  // namespace cudp
