// A table of one's own with nothing typed but the budget: what is chosen by the noisy number of
// rows, where it shows, and that it stays so over a resume.
#include <cmath>
#include <csignal>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/settings/parse_settings.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/patients.hpp"

namespace cudp {
namespace {

using Json = nlohmann::json;

/// Days in a ward: most stays are short, few are long; a linear model explains about a fifth.
std::string skewed_stays(std::size_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::string csv = "age,lactate,ward,days\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const double age = std::clamp(58.0 + 18.0 * normal(random), 0.0, 104.0);
    const double lactate = std::exp(0.4 + 0.6 * normal(random));
    const std::size_t ward = random() % 4;
    const double days = std::exp(1.2 + 0.012 * (age - 58.0) + 0.1 * std::fmin(lactate, 6.0) +
                                 (ward == 2 ? 0.5 : 0.0) + 0.6 * normal(random));
    csv += fmt::format("{:.0f},{:.2f},{},{:.1f}\n", age, lactate, "abcd"[ward], days);
  }
  return csv;
}

constexpr const char* kSkewedStays = R"(name = "stays"
columns = [
  {name = "age", kind = "numeric", min = 0, max = 105},
  {name = "lactate", kind = "numeric", min = 0, max = 20},
  {name = "ward", kind = "categorical", values = ["a", "b", "c", "d"]},
  {name = "days", kind = "target", min = 0, max = 60},
]
)";

class TableDefaultsCli : public testing::Test {
 protected:
  TableDefaultsCli() {
    write_text(folder_ / "patients.csv", patients(2'000, 1));
    write_text(folder_ / "patients.toml", kPatientsSchema);
  }
  Arguments training(const std::string& out, const Arguments& more = {}) const {
    return with(
        {"train", "--dataset", folder_ / "patients.csv", "--schema", folder_ / "patients.toml",
         "--epsilon", "1", "--delta", "1e-6", "--threads", "1", "--out", folder_ / out},
        more);
  }
  Settings config_of(const std::string& run) const {
    return parse_settings(content_of(folder_ / (run + "/release/config.toml")), run);
  }
  double number(const std::string& run, const std::string& key) const {
    const Value value = config_of(run).at(key).value;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    return std::get<double>(value);
  }

  TemporaryFolder folder_;
};

/// The batch follows from the count, however coarse that is; other methods say what to type.
TEST_F(TableDefaultsCli, ACoarseCountIsNoReasonToRefuseABatchThatNobodyTyped) {
  const Arguments budget = {"--epsilon", "0.001", "--seed", "1"};
  const Finished f = run_cudp(folder_, training("run", budget));
  EXPECT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("chosen for a table of about"), std::string::npos) << f.err;
  const Finished typed = run_cudp(folder_, training("typed", with(budget, {"--batch", "100"})));
  EXPECT_EQ(typed.exit, 3) << typed.err;
  EXPECT_NE(typed.err.find("too coarse for batches of 100; raise --epsilon, type --batch "),
            std::string::npos)
      << typed.err;
  const Finished other = run_cudp(folder_, training("mlp", with(budget, {"--model", "mlp"})));
  EXPECT_EQ(other.exit, 3) << other.err;
  EXPECT_NE(other.err.find("too coarse for batches of 512; raise --epsilon, type --batch "),
            std::string::npos)
      << other.err;
}

TEST_F(TableDefaultsCli, AMethodWithSettingsOfItsOwnSaysWhatToType) {
  const Finished f = run_cudp(
      folder_, training("run", {"--method", "dpsgd-quantile", "--steps", "5", "--seed", "1"}));
  EXPECT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("dpsgd would start from batch "), std::string::npos) << f.err;
  EXPECT_NE(f.err.find("dpsgd-quantile needs settings of its own: "), std::string::npos) << f.err;
}

TEST_F(TableDefaultsCli, TheNoisyNumberOfRowsChoosesAndAllFilesAgree) {
  const Finished f = run_cudp(folder_, training("run", {"--seed", "1"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("chosen for a table of about"), std::string::npos) << f.err;
  const Json certificate = Json::parse(content_of(folder_ / "run/release/privacy.json"));
  const double rows = certificate.at("size_release").at("noisy_size").get<double>();
  EXPECT_EQ(number("run", "batch"), std::floor(rows / 25.0));
  EXPECT_EQ(number("run", "epochs"), 20.0);
  EXPECT_EQ(number("run", "ema"), 0.99);
  EXPECT_EQ(number("run", "clip"), 0.5);
  EXPECT_GT(number("run", "lr"), 0.0);
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
  EXPECT_EQ(run_cudp(folder_, {"account", folder_ / "run", "--what-if", "epochs=10"}).exit, 0);
  // The settings that were written give the same run again.
  const Finished again = run_cudp(
      folder_,
      with({"train", "--config", folder_ / "run/release/config.toml", "--out", folder_ / "again",
            "--dataset", folder_ / "patients.csv", "--schema", folder_ / "patients.toml"},
           {"--seed", "1"}));
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.err.find("chosen for a table"), std::string::npos) << again.err;
  EXPECT_EQ(content_of(folder_ / "again/release/model.safetensors"),
            content_of(folder_ / "run/release/model.safetensors"));
}

TEST_F(TableDefaultsCli, WhatIsTypedWins) {
  const Finished f = run_cudp(
      folder_, training("run", args("--size-is-public --epochs 3 --lr 0.25 --clipping automatic")));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("chosen for a table of 2000 rows, 12 parameters and this budget: batch 80, "
                       "ema 0.99, clip 0.5; what you type wins"),
            std::string::npos)
      << f.err;
  EXPECT_EQ(number("run", "epochs"), 3.0);
  EXPECT_EQ(number("run", "lr"), 0.25);
  // Another network, or a preset, keeps the general settings or the preset's.
  ASSERT_EQ(run_cudp(folder_, training("mlp", args("--model mlp --steps 2 --quiet"))).exit, 0);
  EXPECT_EQ(number("mlp", "batch"), 512.0);
  EXPECT_EQ(number("mlp", "ema"), 0.0);
  ASSERT_EQ(
      run_cudp(folder_, training("preset", args("--preset bank-logistic --steps 2 --quiet"))).exit,
      0);
  EXPECT_EQ(number("preset", "batch"), 1024.0);
}

/// The checkpoint has what was chosen, and a resume chooses nothing.
TEST_F(TableDefaultsCli, AResumeHasTheSettingsThatTheRunBeganWith) {
  const Arguments seeded = args("--seed 5 --checkpoint-every 20 --steps 4000 --quiet");
  ASSERT_EQ(run_cudp(folder_, training("whole", seeded)).exit, 0);
  {
    CudpProcess process(folder_, training("killed", seeded));
    wait_until([&] { return !newest_checkpoint_file(folder_ / "killed").empty(); });
    process.signal(SIGKILL);
    ASSERT_EQ(process.wait().exit, -1) << "it must not be finished";
  }
  const Finished other =
      run_cudp(folder_, {"train", "--resume", folder_ / "killed", "--batch", "512"});
  EXPECT_EQ(other.exit, 2) << other.err;
  EXPECT_NE(other.err.find("--batch: expected"), std::string::npos) << other.err;
  const Finished f = run_cudp(folder_, {"train", "--resume", folder_ / "killed"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(f.err.find("chosen for a table"), std::string::npos) << f.err;
  for (const char* file : {"config.toml", "privacy.json", "model.safetensors"})
    EXPECT_EQ(content_of(folder_ / (std::string("killed/release/") + file)),
              content_of(folder_ / (std::string("whole/release/") + file)))
        << file;
}

/// With the general settings R2 was below 0 or about it.
TEST_F(TableDefaultsCli, ARegressionAtEpsilonOneIsOfUse) {
  write_text(folder_ / "stays.csv", skewed_stays(20'000, 1));
  write_text(folder_ / "held.csv", skewed_stays(20'000, 2));
  write_text(folder_ / "stays.toml", kSkewedStays);
  for (const char* seed : {"1", "2", "3"}) {
    const Finished f = run_cudp(
        folder_,
        with({"train", "--dataset", folder_ / "stays.csv", "--schema", folder_ / "stays.toml",
              "--test-data", folder_ / "held.csv", "--test-data-is-public", "--out",
              folder_ / (std::string("run") + seed), "--seed", seed},
             args("--epsilon 1 --delta 1e-6 --threads 1 --quiet --json --eval-every 0")));
    ASSERT_EQ(f.exit, 0) << f.err;
    const double r2 = Json::parse(f.out).at("r2").get<double>();
    std::printf("R2 %.4f\n", r2);
    EXPECT_GE(r2, 0.15) << seed;
  }
}

}  // namespace
}  // namespace cudp
