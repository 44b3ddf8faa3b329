// Hold-outs from the command line: what is published of held-out rows and what stays private, that
// no row moves over crashes and fresh keys, and what is refused.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/random_numbers.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/replayed_run.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Words kBudget = {"--epsilon",         "2", "--delta",         "1e-5", "--holdout", "0.25",
                       "--holdout-epsilon", "1", "--holdout-delta", "1e-6"};

class HoldoutCli : public testing::Test {
 protected:
  HoldoutCli() {
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
  Words words(const std::string& table, const Words& more) const {
    return with({"train", "--dataset", folder_ / table, "--batch", "200", "--threads", "1",
                 "--device", "cpu", "--accountant", "rdp", "--out", folder_ / "run"},
                more);
  }
  Finished train(const std::string& table, const Words& more) const {
    return run_cudp(folder_, words(table, more));
  }
  Finished resume(const Words& more = {}) const {
    CudpProcess process(folder_, with({"train", "--resume", folder_ / "run"}, more));
    std::atomic<bool> ended = false;
    std::thread watch([&] {  // what goes on where it should be refused would not end
      for (int i = 0; i < 200 && !ended; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!ended) process.signal(SIGKILL);
    });
    const Finished f = process.wait();
    ended = true;
    watch.join();
    return f;
  }
  Json json(const std::string& name) const {
    return Json::parse(content_of(folder_ / ("run/" + name)));
  }
  /// A run that was killed somewhere in the middle.
  void train_and_kill(const std::string& table = "visits.csv") const {
    CudpProcess process(
        folder_,
        words(table, with(kBudget, {"--steps", "2000000", "--checkpoint-every", "5", "--quiet"})));
    const auto steps = [&] {
      const std::string name = newest_checkpoint_file(folder_ / "run").filename().string();
      return name.empty() ? 0 : std::stoi(name.substr(11));
    };
    for (int i = 0; i < 20'000 && steps() < 10; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.signal(SIGKILL);
    process.wait();
    ASSERT_GE(steps(), 10);
  }
  std::vector<std::uint32_t> coins() const {
    const auto stored = newest_checkpoint(folder_ / "run/private", [](const std::string&) {});
    if (!stored || !stored->checkpoint.training.coins) return {};
    const RandomKey& key = stored->checkpoint.training.coins->key();
    return {std::begin(key.words), std::end(key.words)};
  }

  TemporaryFolder folder_;
};

/// The exact figure is within bounds of twice the width, so that none is missed by chance.
void expect_about(const Json& bar, double exact) {
  const auto low = bar["low"].get<double>(), high = bar["high"].get<double>();
  EXPECT_LE(low - (high - low) / 2.0, exact) << bar;
  EXPECT_GE(high + (high - low) / 2.0, exact) << bar;
}

TEST_F(HoldoutCli, PublishesNoisyFiguresWithBarsAndKeepsExactOnesPrivate) {
  const Finished f = train("visits.csv", with(kBudget, {"--steps", "20"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = json("release/privacy.json");
  EXPECT_EQ(c["epsilon_total"], 2.0);
  EXPECT_EQ(c["delta_total"], 1e-5);
  EXPECT_EQ(c["holdout"]["share"], 0.25);
  EXPECT_EQ(c["holdout"]["epsilon"], 1.0);
  const Json figures = json("release/holdout.json");
  EXPECT_EQ(figures["classes"], Json::parse(R"(["no", "yes"])"));
  double all = 0.0;
  for (const Json& row : figures["confusion"])
    for (const Json& n : row) all += n.get<double>();
  const Json exact = json("private/evaluation.json");
  const auto rows = exact["test_examples"].get<double>();
  EXPECT_NEAR(all, rows, 6.0 * 2.0 * c["holdout"]["sigma"].get<double>());
  EXPECT_NE(all, rows);
  // A quarter of up to 3,000 rows, in units of two.
  EXPECT_NEAR(rows / c["size_release"]["noisy_size"].get<double>(), 1.0 / 3.0, 0.1);
  for (const Json& bar : figures["bars"]) {
    const auto low = bar["low"].get<double>(), high = bar["high"].get<double>();
    EXPECT_LE(low, bar["value"].get<double>());
    EXPECT_LE(bar["value"].get<double>(), high);
    if (bar["metric"] != "accuracy") continue;
    expect_about(bar, exact["test_accuracy"].get<double>());
  }
  EXPECT_EQ(json("private/result.json")["epsilon_total"], 2.0);
  EXPECT_NE(f.out.find("epsilon in all"), std::string::npos) << f.out;
  EXPECT_EQ(f.out.find("--test-data-is-public"), std::string::npos);
  // Nothing exact is shown or published.
  EXPECT_FALSE(fs::exists(folder_ / "run/release/evaluation.json"));
  EXPECT_EQ(f.err.find("PRIVATE"), std::string::npos) << f.err;
  EXPECT_EQ(f.out.find(fmt::format("{:.2f} %", 100.0 * exact["test_accuracy"].get<double>())),
            std::string::npos);
  EXPECT_EQ(content_of(folder_ / "run/release/metrics.jsonl").find("accuracy"), std::string::npos);
  const Finished v = run_cudp(folder_, {"verify", folder_ / "run"});
  EXPECT_EQ(v.exit, 0) << v.out;
}

TEST_F(HoldoutCli, OfATargetAreNoisyErrors) {
  const Finished f = train("stays.csv", with(kBudget, {"--steps", "60"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json figures = json("release/holdout.json");
  EXPECT_EQ(figures["releases"], 4);
  const Json exact = json("private/evaluation.json");
  for (const Json& bar : figures["bars"]) {
    expect_about(bar, exact[bar["metric"].get<std::string>()].get<double>());
  }
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
}

TEST_F(HoldoutCli, WithoutABudgetOfItsOwnSaysNothing) {
  const Finished f = train(
      "visits.csv", {"--epsilon", "2", "--delta", "1e-5", "--holdout", "0.25", "--steps", "20"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/release/holdout.json"));
  EXPECT_TRUE(fs::exists(folder_ / "run/private/evaluation.json"));
  EXPECT_EQ(json("release/privacy.json")["epsilon_total"], 2.0);
}

TEST_F(HoldoutCli, MoveNoRowUnderAFreshKey) {
  train_and_kill();
  const std::vector<std::uint32_t> before = coins();
  ASSERT_EQ(before.size(), 8u);
  EXPECT_NE(before, std::vector<std::uint32_t>(8, 0));
  CudpProcess process(folder_, {"train", "--resume", folder_ / "run", "--fresh-noise", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  process.signal(SIGKILL);
  process.wait();
  EXPECT_EQ(coins(), before);
  EXPECT_NE(content_of(folder_ / "run/private/log.txt").find("with a new key"), std::string::npos);
}

TEST_F(HoldoutCli, AreRefusedWhereTheirCoinsAreLost) {
  train_and_kill();
  const fs::path private_folder = folder_ / "run/private";
  auto stored = newest_checkpoint(private_folder, [](const std::string&) {});
  ASSERT_TRUE(stored.has_value());
  // A checkpoint without them.
  const auto key = read_key(private_folder / "key");
  ASSERT_TRUE(key.has_value());
  stored->checkpoint.training.coins.reset();
  stored->checkpoint.training.step += 1;
  save_checkpoint(private_folder, stored->checkpoint, Seal(key->key()));
  for (const Words& more : std::vector<Words>{{}, {"--fresh-noise"}}) {
    const Finished f = resume(more);
    EXPECT_EQ(f.exit, 3) << f.err;
    EXPECT_NE(f.err.find("the key of the coins by which rows were held out"), std::string::npos)
        << f.err;
  }
  // No checkpoint at all.
  remove_checkpoints(private_folder);
  EXPECT_EQ(resume().exit, 3);
}

TEST_F(HoldoutCli, FiguresArePaidForOnce) {
  train_and_kill();
  write_text(folder_ / "run/private/holdout-released", "0\n");
  const Finished f = resume({"--fresh-noise"});
  EXPECT_EQ(f.exit, 3) << f.err;
  EXPECT_NE(f.err.find("which their budget pays for once"), std::string::npos) << f.err;
}

/// Held out, by the coins of the newest checkpoint, of rows that are units.
std::vector<bool> held_out(const std::vector<std::uint32_t>& coins, std::size_t rows) {
  RandomKey key{};
  std::ranges::copy(coins, std::begin(key.words));
  std::vector<bool> held;
  for (const std::uint32_t word :
       random_words({Generator::chacha20, key, Stream::sampling, 0}, rows))
    held.push_back(word * 0x1p-32 < 0.25);
  return held;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream in(content_of(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_text(file, text);
}

/// The same noise on other figures would tell their difference; and whoever was trained on must not
/// be held out later, under a fresh key either.
TEST_F(HoldoutCli, GoOnWithTheSameRowsInTheSamePartsOnly) {
  train_and_kill("stays.csv");
  const fs::path table = folder_ / "stays.csv";
  const std::vector<std::string> before = lines_of(table);
  const std::vector<bool> held = held_out(coins(), before.size() - 1);
  // Lines, the header being one, of two held-out rows and one that was trained on.
  const auto first = std::ranges::find(held, true);
  const auto one = static_cast<std::size_t>(first - held.begin()) + 1;
  const auto two =
      static_cast<std::size_t>(std::find(first + 1, held.end(), true) - held.begin()) + 1;
  const auto trained = static_cast<std::size_t>(std::ranges::find(held, false) - held.begin()) + 1;
  ASSERT_LT(two, before.size());
  std::vector<std::vector<std::string>> others(6, before);
  std::string& target = others[0][one];  // of a held-out row alone
  target.replace(target.rfind(',') + 1, std::string::npos, target.ends_with(",1") ? "2" : "1");
  others[1].erase(others[1].begin() + static_cast<std::ptrdiff_t>(before.size()) - 1);
  for (std::size_t i = before.size() - 1; i > 0 && others[2].size() == before.size(); --i)
    if (held[i - 1]) others[2].erase(others[2].begin() + static_cast<std::ptrdiff_t>(i));
  std::swap(others[3][one], others[3][two]);
  std::swap(others[4][one], others[4][trained]);  // changes its part
  others[5].insert(others[5].begin() + 1, others[5][one]);
  ASSERT_NE(before[one], before[two]);
  ASSERT_NE(before[one], before[trained]);
  for (std::size_t i = 0; i < others.size(); ++i)
    for (const Words& more : std::vector<Words>{{}, {"--fresh-noise"}}) {
      write_lines(table, others[i]);
      const Finished f = resume(more);
      EXPECT_EQ(f.exit, 2) << i << f.err;
      EXPECT_NE(f.err.find("held-out rows too, found other data"), std::string::npos) << f.err;
    }
  // Another key for all that is lost does not help.
  fs::remove(folder_ / "run/private/key");
  EXPECT_EQ(resume().exit, 2);
  // Other shares and budgets are other experiments.
  write_lines(table, before);
  for (const Words& more : std::vector<Words>{{"--holdout", "0.3"},
                                              {"--holdout", "0.25", "--holdout-epsilon", "1.5"},
                                              {"--holdout", "0.25", "--holdout-delta", "1e-5"}}) {
    const Finished f = resume(with(more, {"--fresh-noise"}));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find("as in the run being resumed"), std::string::npos) << f.err;
  }
}

/// Ends the process once noise of held-out figures was drawn.
class KilledAtFigures : public Witness {
 public:
  void leaves(const Leaving& what, std::span<std::byte>) override {
    if (what.purpose == Stream::holdout_figures) ::raise(SIGKILL);
  }
};

TEST_F(HoldoutCli, FiguresOfOtherRowsAreNotMadeUnderTheNoiseThatWasDrawn) {
  const Words run = words("stays.csv", with(kBudget, {"--steps", "5", "--seed", "3"}));
  // By the same program throughout, which alone goes on under the same key.
  const auto go_on = [&](const Words& more = {}) {
    return run_witnessed(folder_.path(), with({"train", "--resume", folder_ / "run"}, more),
                         [] { return nullptr; });
  };
  const Ended killed = run_witnessed(folder_.path(), run, [] { return new KilledAtFigures; });
  ASSERT_EQ(killed.exit, -SIGKILL) << killed.err;
  ASSERT_TRUE(fs::exists(folder_ / "run/private/holdout-released"));
  const fs::path table = folder_ / "stays.csv";
  const std::vector<std::string> before = lines_of(table);
  const std::vector<bool> held = held_out(coins(), before.size() - 1);
  std::vector<std::string> other = before;
  for (std::size_t i = 1; i < other.size(); ++i)
    if (held[i - 1]) other[i].replace(other[i].rfind(',') + 1, std::string::npos, "40");
  write_lines(table, other);
  const Ended refused = go_on();
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("held-out rows too, found other data"), std::string::npos)
      << refused.err;
  EXPECT_EQ(go_on({"--fresh-noise"}).exit, 3);
  EXPECT_FALSE(fs::exists(folder_ / "run/release/holdout.json"));
  write_lines(table, before);
  EXPECT_EQ(go_on({"--fresh-noise"}).exit, 3);
  EXPECT_EQ(go_on().exit, 0);
  EXPECT_TRUE(fs::exists(folder_ / "run/release/holdout.json"));
}

/// A group of units may be in both parts.
TEST_F(HoldoutCli, StateNoBoundOfGroups) {
  const Finished f = train("stays.csv", with(kBudget, {"--steps", "5"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_TRUE(json("release/privacy.json")["groups"].is_string());
  const Finished said = run_cudp(folder_, {"account", folder_ / "run", "--json"});
  EXPECT_NE(said.out.find("both parts together are bounded for single units only"),
            std::string::npos)
      << said.out;
}

/// What is promised of a release is promised of all of it.
TEST_F(HoldoutCli, TheLargerPromiseIsExplained) {
  const Finished f =
      train("stays.csv",
            with(kBudget, {"--holdout-epsilon", "7.5", "--holdout-delta", "1e-3", "--steps", "5"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("7.5 at delta 0.001"), std::string::npos) << f.out;
  const Finished said = run_cudp(folder_, {"account", folder_ / "run", "--json"});
  EXPECT_NE(said.out.find("Epsilon is 7.5 at delta 0.001"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("at most 1809 times"), std::string::npos) << said.out;
  // Of 4,000 rows, delta is no smaller than one over their number.
  EXPECT_NE(f.err.find("delta 0.001 is above 1 /"), std::string::npos) << f.err;
  // With another run, and as that run counts.
  const auto both = Json::parse(run_cudp(folder_, {"account", folder_ / "run", "--json"}).out);
  EXPECT_EQ(both["epsilon_total"], 7.5);
  ASSERT_EQ(run_cudp(folder_, with(words("stays.csv", kBudget),
                                   {"--steps", "5", "--out", folder_ / "other"}))
                .exit,
            0);
  const Finished sum = run_cudp(
      folder_, {"account", folder_ / "run", folder_ / "other", "--delta", "0.01", "--json"});
  ASSERT_EQ(sum.exit, 0) << sum.err;
  const Json together = Json::parse(sum.out);
  EXPECT_EQ(together["runs"][0]["epsilon"], 7.5);
  EXPECT_EQ(together["runs"][1]["epsilon"], 2.0);
  EXPECT_GE(together["epsilon"], 9.0);
}

/// A batch above the noisy number of training examples: that number alone was released.
TEST_F(HoldoutCli, RefusedOnceCountedAreCertifiedAndVerified) {
  const Finished f = train("stays.csv", with(kBudget, {"--steps", "5", "--batch", "5000"}));
  EXPECT_EQ(f.exit, 2) << f.err;
  EXPECT_EQ(json("release/privacy.json")["status"], "refused");
  const Finished v = run_cudp(folder_, {"verify", folder_ / "run"});
  EXPECT_EQ(v.exit, 0) << v.out << v.err;
}

/// One row, which one seed trains on and the other holds out.
TEST_F(HoldoutCli, OfATargetMayLeaveAPartWithoutRows) {
  write_text(folder_ / "stays.csv", "who,age,hours,days\np1,30,20,8\n");
  std::vector<std::vector<std::string>> files, words;
  std::vector<bool> is_tested;
  for (const char* const seed : {"1", "5"}) {
    const Finished f = train(
        "stays.csv", with(kBudget, {"--holdout", "0.5", "--steps", "3", "--batch", "1", "--seed",
                                    seed, "--epsilon", "30", "--holdout-epsilon", "40"}));
    ASSERT_EQ(f.exit, 0) << f.err;
    files.emplace_back();
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run"))
      files.back().push_back(entry.path().string());
    std::ranges::sort(files.back());
    words.emplace_back();
    std::istringstream lines(f.out);  // but for numbers, which are random
    for (std::string line; std::getline(lines, line);)
      words.back().push_back(line.substr(0, line.find("  ")));
    const Json exact = json("private/evaluation.json");
    is_tested.push_back(exact["test_examples"] == 1);
    EXPECT_EQ(exact["rmse"].is_null(), !is_tested.back()) << exact;
    EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
    fs::remove_all(folder_ / "run");
  }
  EXPECT_NE(is_tested[0], is_tested[1]);
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(words[0], words[1]);
}

/// What is private is in numbers alone, never in which files there are.
TEST_F(HoldoutCli, DrawNoPicturesOfHeldOutRows) {
  ASSERT_EQ(train("visits.csv", with(kBudget, {"--steps", "5"})).exit, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "run/private"))
    EXPECT_NE(entry.path().extension(), ".png") << entry.path();
  EXPECT_TRUE(fs::exists(folder_ / "run/release/curves.png"));
}

TEST_F(HoldoutCli, RefusesInOneLineWhatCannotBe) {
  write_text(folder_ / "test.csv", "age,hours,ill\n30,20,no\n");
  const Words some = {"--epsilon", "2", "--delta", "1e-5", "--steps", "5"};
  const std::vector<Words> all = {
      {"--holdout", "0"},
      {"--holdout", "1"},
      {"--holdout-epsilon", "1"},
      {"--holdout", "0.2", "--holdout-epsilon", "1"},
      {"--holdout", "0.2", "--holdout-delta", "1e-6"},
      {"--holdout", "0.2", "--size-is-public"},
      {"--holdout", "0.2", "--holdout-epsilon", "1", "--holdout-delta", "0.2"},
      {"--holdout", "0.2", "--holdout-epsilon", "300", "--holdout-delta", "1e-6"},
      {"--holdout", "0.2", "--test-data-is-public"},
      {"--holdout", "0.2", "--test-data", folder_ / "test.csv"}};
  for (const Words& more : all) {
    const Finished f = train("visits.csv", with(some, more));
    EXPECT_EQ(f.exit, 2) << more[0] << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
  const Finished named = run_cudp(
      folder_,
      with({"train", "--dataset", "glyphs", "--out", folder_ / "run", "--holdout", "0.2"}, some));
  EXPECT_EQ(named.exit, 2) << named.err;
}

}  // namespace
}  // namespace cudp
