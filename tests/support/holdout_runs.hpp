#pragma once
// Runs of the built program with held-out rows: on a table with units, and on one with a target.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/run/checkpoint.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {

inline const Arguments kHoldoutBudget = {"--epsilon",       "2",    "--delta",           "1e-5",
                                         "--holdout",       "0.25", "--holdout-epsilon", "1",
                                         "--holdout-delta", "1e-6"};

class HoldoutRuns : public testing::Test {
 protected:
  HoldoutRuns() {
    std::mt19937_64 random(5);
    std::string rows = "who,age,hours,ill\n", stays = "who,age,hours,days\n";
    for (int i = 0; i < 4'000; ++i) {
      const auto age = 17 + random() % 74, hours = random() % 41;
      const std::string cells = fmt::format("p{},{},{},", random() % 1'500, age, hours);
      rows += cells + (age + hours + random() % 20 > 80 ? "yes\n" : "no\n");
      stays += cells + std::to_string((age + hours) / 4 + random() % 9) + "\n";
    }
    write_text(folder_ / "visits.csv", rows);
    write_text(folder_ / "stays.csv", stays);
    write_text(folder_ / "visits.csv.schema.toml",
               schema("unit = \"who\"\nmax_rows = 2\n", R"(label", values = ["no", "yes"])"));
    write_text(folder_ / "stays.csv.schema.toml", schema("", R"(target", min = 0, max = 40)"));
  }
  static std::string schema(const std::string& unit, const std::string& predicted) {
    return "name = \"rows\"\n" + unit + R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = ")" +
           (predicted.starts_with("label") ? "ill" : "days") + "\", kind = \"" + predicted +
           "},\n]\n";
  }
  Arguments words(const std::string& table, const Arguments& more) const {
    return with({"train", "--dataset", folder_ / table, "--batch", "200", "--threads", "1",
                 "--device", "cpu", "--accountant", "rdp", "--out", folder_ / "run"},
                more);
  }
  Finished train(const std::string& table, const Arguments& more) const {
    return run_cudp(folder_, words(table, more));
  }
  Finished resume(const Arguments& more = {}) const {
    CudpProcess process(folder_, with({"train", "--resume", folder_ / "run"}, more));
    // A run that continues although it should be refused would not end.
    if (!wait_until([&] { return process.has_ended(); })) process.signal(SIGKILL);
    return process.wait();
  }
  nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(content_of(folder_ / ("run/" + name)));
  }
  /// Starts a run and kills it somewhere in the middle.
  void train_and_kill(const std::string& table = "visits.csv") const {
    CudpProcess process(
        folder_, words(table, with(kHoldoutBudget,
                                   {"--steps", "2000000", "--checkpoint-every", "5", "--quiet"})));
    const auto steps = [&] {
      const std::string name = newest_checkpoint_file(folder_ / "run").filename().string();
      return name.empty() ? 0 : std::stoi(name.substr(11));
    };
    wait_until([&] { return steps() >= 10; });
    process.signal(SIGKILL);
    process.wait();
    ASSERT_GE(steps(), 10);
  }
  std::vector<std::uint32_t> split_key() const {
    const auto stored = newest_checkpoint(folder_ / "run/private", [](const std::string&) {});
    if (!stored || !stored->checkpoint.training.split_key) return {};
    const RandomKey& key = stored->checkpoint.training.split_key->key();
    return {std::begin(key.words), std::end(key.words)};
  }

  TemporaryFolder folder_;
};

}  // namespace cudp
