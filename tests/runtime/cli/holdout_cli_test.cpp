// Hold-outs from the command line: what is published of held-out rows and what stays private, and
// what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "tests/support/holdout_runs.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using HoldoutCli = HoldoutRuns;

TEST_F(HoldoutCli, PublishesNoisyFiguresWithBarsAndKeepsExactOnesPrivate) {
  const Finished f = train("visits.csv", with(kHoldoutBudget, {"--steps", "20"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = json("release/privacy.json");
  EXPECT_EQ(c["format"], "cudp privacy certificate 2");
  EXPECT_EQ(c["epsilon"], 2.0);
  EXPECT_EQ(c["delta"], 1e-5);
  EXPECT_EQ(c["training_epsilon"], 2.0);
  EXPECT_EQ(c["training_delta"], 1e-5);
  EXPECT_EQ(c["holdout"]["share"], 0.25);
  EXPECT_EQ(c["holdout"]["epsilon"], 1.0);
  const Json figures = json("release/holdout.json");
  EXPECT_EQ(figures["classes"], Json::parse(R"(["no", "yes"])"));
  const Json exact = json("private/evaluation.json");
  const auto rows = exact["test_examples"].get<double>();
  // Noise of six standard deviations has probability 2e-9.
  const double tolerance = 6.0 * c["holdout"]["sigma"].get<double>();
  double all = 0.0, right = 0.0;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      const auto noisy = figures["confusion"][i][j].get<double>();
      EXPECT_NEAR(noisy, exact["confusion"][i][j].get<double>(), tolerance);
      all += noisy;
      right += i == j ? noisy : 0.0;
    }
  EXPECT_NEAR(all, rows, 2.0 * tolerance);
  EXPECT_NE(all, rows);
  // A quarter of the persons, of whom up to two rows each are used. The others are counted.
  std::map<std::string, double> used;
  for (const std::string& line : lines_of(content_of(folder_ / "visits.csv")))
    if (line.starts_with('p')) {
      double& of_person = used[line.substr(0, line.find(','))];
      of_person = std::fmin(of_person + 1.0, 2.0);
    }
  double used_rows = 0.0, variance = 0.0;
  for (const auto& [who, n] : used) {
    used_rows += n;
    variance += 0.25 * 0.75 * n * n;
  }
  EXPECT_NEAR(rows, 0.25 * used_rows, 6.0 * std::sqrt(variance));
  EXPECT_NEAR(c["size_release"]["noisy_size"].get<double>(), used_rows - rows,
              6.0 * c["size_release"]["noise_std"].get<double>());
  for (const Json& bar : figures["bars"]) {
    const auto low = bar["low"].get<double>(), high = bar["high"].get<double>();
    EXPECT_LE(low, bar["value"].get<double>());
    EXPECT_LE(bar["value"].get<double>(), high);
    if (bar["metric"] != "accuracy") continue;
    EXPECT_NEAR(bar["value"].get<double>(), std::clamp(right / all, low, high), 1e-9);
  }
  EXPECT_EQ(json("private/result.json")["epsilon"], 2.0);
  EXPECT_EQ(json("private/result.json")["training_epsilon"], 2.0);
  EXPECT_EQ(json("private/result.json")["held_out"], figures["bars"]);
  EXPECT_NE(f.out.find("training alone  2 at delta"), std::string::npos) << f.out;
  EXPECT_NE(f.out.find(fmt::format("held-out rows   accuracy {:.4g}, with noise",
                                   figures["bars"][0]["value"].get<double>())),
            std::string::npos)
      << f.out;
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

/// Of the same seed the noise is the same, so that the two matrices differ by whole rows: those
/// whose probability is between the thresholds, exactly as the private figures say.
TEST_F(HoldoutCli, AThresholdMovesRowsOfTheMatrixAndIsInTheCertificate) {
  const Arguments seeded = with(kHoldoutBudget, {"--steps", "20", "--seed", "3"});
  ASSERT_EQ(train("visits.csv", seeded).exit, 0);
  const Json half = json("release/holdout.json")["confusion"];
  const Json exact_half = json("private/evaluation.json")["confusion"];
  EXPECT_FALSE(json("release/privacy.json")["holdout"].contains("threshold"));
  fs::remove_all(folder_ / "run");
  const Finished f = train("visits.csv", with(seeded, {"--holdout-threshold", "0.3"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json figures = json("release/holdout.json");
  EXPECT_EQ(figures["threshold"], 0.3);
  const Json exact = json("private/evaluation.json");
  EXPECT_EQ(exact["at_threshold"]["threshold"], 0.3);
  bool moved = false;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      const double rows = exact["confusion"][i][j].get<double>() - exact_half[i][j].get<double>();
      moved = moved || rows != 0.0;
      EXPECT_NEAR(figures["confusion"][i][j].get<double>() - half[i][j].get<double>(), rows, 1e-6);
    }
  EXPECT_TRUE(moved);
  EXPECT_EQ(json("release/privacy.json")["holdout"]["threshold"], 0.3);
  EXPECT_NE(content_of(folder_ / "run/release/config.toml").find("holdout-threshold = 0.3"),
            std::string::npos);
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
  // A certificate of another threshold, or of none, is not that of the settings.
  const std::string certificate = content_of(folder_ / "run/release/privacy.json");
  for (const bool remove : {false, true}) {
    Json c = Json::parse(certificate);
    if (remove)
      c["holdout"].erase("threshold");
    else
      c["holdout"]["threshold"] = 0.4;
    write_text(folder_ / "run/release/privacy.json", c.dump(2));
    const Finished v = run_cudp(folder_, {"verify", folder_ / "run"});
    EXPECT_EQ(v.exit, 1) << v.out;
    EXPECT_NE(v.out.find("holdout-threshold"), std::string::npos) << v.out;
  }
}

TEST_F(HoldoutCli, AThresholdNeedsTwoClassesWithProbabilitiesAndAHoldout) {
  const Arguments some = {"--epsilon", "2", "--delta", "1e-5", "--steps", "5"};
  const auto refused = [&](const char* table, const Arguments& more, const char* words) {
    const Finished f = train(table, with(some, more));
    EXPECT_EQ(f.exit, 2);
    EXPECT_NE(f.err.find(words), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  refused("visits.csv", {"--holdout-threshold", "0.3"},
          "--holdout-threshold: expected --holdout with it, found none");
  refused("visits.csv", {"--holdout", "0.2", "--holdout-threshold", "1.5"}, "a number in [0, 1]");
  refused("stays.csv", {"--holdout", "0.2", "--holdout-threshold", "0.3"},
          "--holdout-threshold: expected a model of two classes, found one that predicts a target");
  refused("visits.csv", {"--holdout", "0.2", "--holdout-threshold", "0.3", "--model", "svm"},
          "--holdout-threshold: expected a model that gives probabilities");
  refused("stays.csv", {"--metric", "auc"}, "--metric: expected with classes only, found auc");
}

TEST_F(HoldoutCli, OfATargetAreNoisyErrors) {
  const Finished f = train("stays.csv", with(kHoldoutBudget, {"--steps", "60"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json figures = json("release/holdout.json");
  EXPECT_EQ(figures["releases"], 4);
  const Json exact = json("private/evaluation.json");
  const auto number = [](const Json& of, const char* name) { return of[name].get<double>(); };
  const double width = 40.0, count = number(exact, "test_examples");
  const double mae = number(exact, "mae") / width, rmse = number(exact, "rmse") / width;
  // Noise of six standard deviations has probability 2e-9.
  const double tolerance = 6.0 * number(figures, "noise_std");
  const Json& sums = figures["sums_over_width"];
  EXPECT_NEAR(number(sums, "rows"), count, tolerance);
  EXPECT_NEAR(number(sums, "absolute_errors"), count * mae, tolerance);
  EXPECT_NEAR(number(sums, "squared_errors"), count * rmse * rmse, tolerance);
  ASSERT_EQ(figures["bars"].size(), 2u);
  for (const Json& bar : figures["bars"]) {
    const bool is_rmse = bar["metric"] == "rmse";
    const double mean = std::clamp(
        number(sums, is_rmse ? "squared_errors" : "absolute_errors") / number(sums, "rows"), 0.0,
        1.0);
    EXPECT_NEAR(number(bar, "value"), width * (is_rmse ? std::sqrt(mean) : mean), 1e-6);
    EXPECT_LE(number(bar, "low"), number(bar, "value"));
    EXPECT_LE(number(bar, "value"), number(bar, "high"));
  }
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
}

TEST_F(HoldoutCli, WithoutABudgetOfItsOwnSaysNothing) {
  const Finished f = train(
      "visits.csv", {"--epsilon", "2", "--delta", "1e-5", "--holdout", "0.25", "--steps", "20"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/release/holdout.json"));
  EXPECT_TRUE(fs::exists(folder_ / "run/private/evaluation.json"));
  EXPECT_EQ(json("release/privacy.json")["epsilon"], 2.0);
  EXPECT_EQ(json("release/privacy.json")["training_epsilon"], 2.0);
}

/// A group of units may be in both parts.
TEST_F(HoldoutCli, StateNoBoundOfGroups) {
  const Finished f = train("stays.csv", with(kHoldoutBudget, {"--steps", "5"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_TRUE(json("release/privacy.json")["groups"].is_string());
  const Finished said = run_cudp(folder_, {"account", folder_ / "run", "--json"});
  EXPECT_NE(said.out.find("both parts together are bounded for single units only"),
            std::string::npos)
      << said.out;
}

/// What is promised of a release is promised of all of it.
TEST_F(HoldoutCli, TheLargerPromiseIsExplained) {
  const Finished f = train(
      "stays.csv", with(kHoldoutBudget,
                        {"--holdout-epsilon", "7.5", "--holdout-delta", "1e-3", "--steps", "5"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("7.5 at delta 0.001"), std::string::npos) << f.out;
  const Finished said = run_cudp(folder_, {"account", folder_ / "run", "--json"});
  EXPECT_NE(said.out.find("Epsilon is 7.5 at delta 0.001"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("at most 1809 times"), std::string::npos) << said.out;
  // Of 4,000 rows, delta is no smaller than one over their number.
  EXPECT_NE(f.err.find("delta 0.001 is above 1 /"), std::string::npos) << f.err;
  // With another run, and as that run counts.
  const auto both = Json::parse(run_cudp(folder_, {"account", folder_ / "run", "--json"}).out);
  EXPECT_EQ(both["epsilon"], 7.5);
  EXPECT_EQ(both["training_epsilon"], 2.0);
  ASSERT_EQ(run_cudp(folder_, with(words("stays.csv", kHoldoutBudget),
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

std::vector<Json> rows_of(const std::string& file) {
  std::vector<Json> rows;
  std::istringstream lines(content_of(file));
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

/// What is read first is the promise for everything: in the certificate, in every row of the
/// metrics, in the curves' title, in the table that the run ends with.
TEST_F(HoldoutCli, TheLargerPromiseIsStatedFirst) {
  const DrawnPictures drawn(folder_ / "drawn");
  const Finished f =
      train("stays.csv",
            with(kHoldoutBudget, {"--epsilon", "1", "--holdout-epsilon", "8", "--epochs", "2"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = json("release/privacy.json");
  EXPECT_EQ(c["epsilon"], 8.0);
  EXPECT_EQ(c["delta"], 1e-5);
  EXPECT_EQ(c["training_epsilon"], 1.0);
  EXPECT_EQ(c["training_delta"], 1e-5);
  const std::vector<Json> rows = rows_of(folder_ / "run/release/metrics.jsonl");
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) EXPECT_EQ(row["epsilon"], 8.0) << row;
  EXPECT_LT(rows[0]["training_epsilon"], rows[1]["training_epsilon"]);
  EXPECT_LE(rows[1]["training_epsilon"], 1.0);
  EXPECT_NE(drawn.script("curves.png").find("epsilon 8 at delta 1e-05"), std::string::npos);
  EXPECT_NE(f.out.find("epsilon         8 at delta 1e-05"), std::string::npos) << f.out;
  EXPECT_NE(f.out.find("training alone  1 at delta 1e-05"), std::string::npos) << f.out;
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
  // A row that states less, or leaves the training's out, is found.
  for (const char* const change : {"epsilon", "training_epsilon"}) {
    std::string text;
    for (Json row : rows) {
      if (std::string(change) == "epsilon")
        row["epsilon"] = 1.0;
      else
        row.erase(change);
      text += row.dump() + "\n";
    }
    write_text(folder_ / "run/release/metrics.jsonl", text);
    EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 1) << change;
  }
}

/// A batch above the noisy number of training examples: that number alone was released.
TEST_F(HoldoutCli, RefusedOnceCountedAreCertifiedAndVerified) {
  const Finished f = train("stays.csv", with(kHoldoutBudget, {"--steps", "5", "--batch", "5000"}));
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
    const Finished f =
        train("stays.csv",
              with(kHoldoutBudget, {"--holdout", "0.5", "--steps", "3", "--batch", "1", "--seed",
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
  ASSERT_EQ(train("visits.csv", with(kHoldoutBudget, {"--steps", "5"})).exit, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "run/private"))
    EXPECT_NE(entry.path().extension(), ".png") << entry.path();
  EXPECT_TRUE(fs::exists(folder_ / "run/release/curves.png"));
}

TEST_F(HoldoutCli, RefusesInOneLineWhatCannotBe) {
  write_text(folder_ / "test.csv", "age,hours,ill\n30,20,no\n");
  const Arguments some = {"--epsilon", "2", "--delta", "1e-5", "--steps", "5"};
  const std::vector<Arguments> all = {
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
  for (const Arguments& more : all) {
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
