// `cudp predict`, what a released model knows of its inputs, and `cudp eval` beside it.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "runtime/base/number_text.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/predict_fixture.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The share of pairs won, by sorting; ties half.
double auc_of(const std::vector<std::string>& lines, const std::vector<std::string>& labels,
              const std::string& positive, std::size_t column) {
  std::map<double, std::pair<double, double>> counts;
  double positives = 0.0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    auto& [yes, no] = counts[std::stod(cells_of(lines[i + 1])[column])];
    (labels[i] == positive ? yes : no) += 1.0;
    positives += labels[i] == positive ? 1.0 : 0.0;
  }
  double won = 0.0;
  double below = 0.0;
  for (const auto& [score, count] : counts) {
    won += count.first * (below + 0.5 * count.second);
    below += count.second;
  }
  return won / positives / (static_cast<double>(labels.size()) - positives);
}

TEST_F(Predict, WritesRowsInOrderAndTheNumbersOfEvalFollowFromThem) {
  // Without a seed, probabilities of a row that the model hardly decides may be rounded to 1/2.
  train("run", {"--seed", "3"});
  const std::vector<std::string> lines = predictions();
  ASSERT_EQ(lines.size(), fresh_.ids.size() + 1);
  EXPECT_EQ(lines[0], "id,prediction,p_nein,p_ja");
  double right = 0.0;
  for (std::size_t i = 0; i < fresh_.ids.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i + 1]);
    ASSERT_EQ(cells.size(), 4u) << lines[i + 1];
    ASSERT_EQ(cells[0], fresh_.ids[i]);
    const double no = std::stod(cells[2]);
    const double yes = std::stod(cells[3]);
    ASSERT_NEAR(no + yes, 1.0, 1e-6);
    ASSERT_EQ(cells[1], yes > no ? "ja" : "nein") << lines[i + 1];
    right += cells[1] == fresh_.labels[i] ? 1.0 : 0.0;
  }
  const Json e = eval();
  EXPECT_EQ(e["test_accuracy"], right / static_cast<double>(fresh_.ids.size()));
  EXPECT_GT(e["auc"], 0.7);
  EXPECT_NEAR(e["auc"].get<double>(), auc_of(lines, fresh_.labels, "ja", 3), 1e-13);
  EXPECT_EQ(e["classes"][1]["class"], "ja");
  struct stat about {};
  ASSERT_EQ(::stat((folder_ / "out.csv").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(Predict, NeedsNoLabelsAndNoSchemaAndReadsColumnsInAnyOrder) {
  train();
  const std::vector<std::string> expected = predictions();
  write_text(folder_ / "new.csv", fresh_.without_label);
  EXPECT_EQ(predictions(), expected);
  EXPECT_EQ(predictions({"--threads", "1"}), expected);
  // Labels that nobody knows yet.
  std::string open = fresh_.csv;
  for (std::size_t at = 0; (at = open.find(",ja,", at)) != std::string::npos;)
    open.replace(at, 4, ",,");
  write_text(folder_ / "new.csv", open);
  EXPECT_EQ(predictions(), expected);
  // Eval needs them.
  const Finished f = cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"});
  EXPECT_EQ(f.exit, 2) << f.out;
}

TEST_F(Predict, TakesARunAReleaseFolderOrAFile) {
  train();
  const std::vector<std::string> expected = predictions();
  fs::create_directory(folder_ / "elsewhere");
  fs::copy(folder_ / "run/release/model.safetensors", folder_ / "elsewhere/m.safetensors");
  for (const std::string& model :
       {folder_ / "run/release", folder_ / "run/release/model.safetensors",
        folder_ / "elsewhere/m.safetensors"}) {
    const Finished f = cudp({"predict", model, "--dataset", folder_ / "new.csv", "--out", "-"});
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(lines_of(f.out), expected) << model;
  }
  expect_refused({"predict", folder_ / "elsewhere", "--dataset", folder_ / "new.csv", "--out",
                  folder_ / "none.csv"},
                 {"expected a run folder with a released model"});
}

TEST_F(Predict, ReadsStandardInput) {
  train();
  const std::vector<std::string> expected = predictions();
  write_text(folder_ / "new.csv.gz", gzipped(fresh_.csv));
  for (const std::string& input : {folder_ / "new.csv", folder_ / "new.csv.gz"}) {
    const std::string command = std::string(cudp_binary()) + " predict " + (folder_ / "run") +
                                " --dataset - --out - <" + input + " >" + (folder_ / "piped.csv");
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(lines_of(content_of(folder_ / "piped.csv")), expected);
  }
}

TEST_F(Predict, AThresholdMovesTheLineBetweenTwoClasses) {
  train();
  const std::vector<std::string> lines = predictions({"--threshold", "0.2"});
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    ASSERT_EQ(cells[1], std::stof(cells[3]) >= 0.2f ? "ja" : "nein") << lines[i];
  }
  EXPECT_EQ(cells_of(predictions({"--threshold", "0"})[1])[1], "ja");
  expect_refused({"predict", folder_ / "run", "--dataset", folder_ / "new.csv", "--out",
                  folder_ / "none.csv", "--threshold", "1.5"},
                 {"--threshold: expected a number in [0, 1]"});
}

TEST_F(Predict, LeavesNothingBehindWhereARowIsWrong) {
  train();
  write_text(folder_ / "new.csv", fresh_.without_label + "seventy,München,Süd,P-0\n");
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{"predict",           folder_ / "run", "--dataset",
                                    folder_ / "new.csv", "--out",         out};
  };
  const std::vector<std::string> words = {"line 9002", "'age'", "seventy"};
  expect_refused(arguments(folder_ / "none.csv"), words);
  expect_refused(arguments("-"), words);
  write_text(folder_ / "kept.csv", "older");
  expect_refused(arguments(folder_ / "kept.csv"), words);
  EXPECT_EQ(content_of(folder_ / "kept.csv"), "older");
}

TEST_F(Predict, DoesNotWriteOverWhatItReads) {
  train();
  expect_refused({"predict", folder_ / "run", "--dataset", folder_ / "new.csv", "--out",
                  folder_ / "./new.csv"},
                 {"expected another file than --dataset"});
  expect_refused({"predict", folder_ / "run", "--dataset", folder_ / "new.csv"},
                 {"expected --out FILE"});
  EXPECT_EQ(content_of(folder_ / "new.csv"), fresh_.csv);
}

TEST_F(Predict, SaysWhatToTypeOfACategoryThatTheModelDoesNotKnow) {
  train();
  write_text(folder_ / "new.csv", "Ärztin,age,ward\nMünchen,40,West\n");
  expect_refused(
      {"predict", folder_ / "run", "--dataset", folder_ / "new.csv", "--out", folder_ / "none.csv"},
      {"line 2, column 'ward'", "found 'West', which the model does not know",
       "--malformed missing"});
  EXPECT_EQ(predictions({"--malformed", "missing"}).size(), 2u);
}

/// A threshold that is found is judged: `predict` makes the predictions that `eval` counts.
TEST_F(Predict, ThresholdsAreFoundAndJudged) {
  train();
  const auto counts = [&](const std::string& threshold) {
    const std::vector<std::string> lines = predictions({"--threshold", threshold});
    std::map<std::pair<std::string, std::string>, std::uint64_t> of;  // label, prediction
    for (std::size_t i = 0; i < fresh_.labels.size(); ++i)
      ++of[{fresh_.labels[i], cells_of(lines[i + 1])[1]}];
    return of;
  };
  const auto expect_counts = [&](const Json& at) {
    auto of = counts(Json(at["threshold"]).dump());
    EXPECT_EQ(at["true_positives"], (of[{"ja", "ja"}])) << at;
    EXPECT_EQ(at["false_positives"], (of[{"nein", "ja"}])) << at;
    EXPECT_EQ(at["true_negatives"], (of[{"nein", "nein"}])) << at;
    EXPECT_EQ(at["false_negatives"], (of[{"ja", "nein"}])) << at;
  };
  const Json found = eval({"--at-precision", "0.7", "--at-recall", "0.9"});
  expect_counts(found["at_precision"]);
  expect_counts(found["at_recall"]);
  EXPECT_GE(found["at_precision"]["ppv"].get<double>(), 0.7);
  EXPECT_GE(found["at_recall"]["sensitivity"].get<double>(), 0.9);
  EXPECT_FALSE(found.contains("at_threshold"));
  const std::string threshold = number_text(found["at_recall"]["threshold"].get<double>());
  const DrawnPictures drawn(folder_ / "drawn");
  const Json judged = eval({"--threshold", threshold, "--out", folder_ / "pictures"});
  EXPECT_EQ(judged["at_threshold"], found["at_recall"]);
  EXPECT_EQ(judged["confusion"][1][1], found["at_recall"]["true_positives"]);
  EXPECT_EQ(judged["classes"][1]["recall"], judged["at_threshold"]["sensitivity"]);
  EXPECT_EQ(judged["auc"], found["auc"]);
  EXPECT_EQ(judged["thresholds"], found["thresholds"]);
  EXPECT_TRUE(fs::exists(folder_ / "pictures/precision_recall.png"));
  EXPECT_NE(drawn.script("roc.png").find("set xlabel '1 - specificity'\nset ylabel "
                                         "'sensitivity'"),
            std::string::npos);
  // People see the same.
  const Arguments command = {"eval",        folder_ / "run", "--dataset",      folder_ / "new.csv",
                             "--threshold", threshold,       "--at-precision", "0.4"};
  const Finished f = cudp(command);
  EXPECT_NE(f.out.find("threshold " + threshold), std::string::npos) << f.out;
  EXPECT_NE(f.out.find("PPV at least 40.00 %"), std::string::npos) << f.out;
  EXPECT_NE(f.out.find(">= 0.05 "), std::string::npos) << f.out;
  // Of rows of one class alone.
  std::string well = fresh_.csv;
  for (std::size_t at = 0; (at = well.find(",ja,", at)) != std::string::npos;)
    well.replace(at, 4, ",nein,");
  write_text(folder_ / "new.csv", well);
  EXPECT_NE(cudp(command).out.find("by no threshold"), std::string::npos);
  const Json of_one = eval({"--at-precision", "0.4", "--at-recall", "0.9"});
  EXPECT_TRUE(of_one["at_precision"].is_null());
  EXPECT_TRUE(of_one["at_recall"].is_null());
  EXPECT_TRUE(of_one["thresholds"][0]["sensitivity"].is_null());
}

TEST_F(Predict, EvaluatesGroupsAndDrawsPictures) {
  train();
  const Json e = eval({"--group-by", "ward", "--out", folder_ / "pictures"});
  ASSERT_EQ(e["groups"].size(), 3u);
  std::uint64_t rows = 0;
  double right = 0.0;
  for (const Json& group : e["groups"]) {
    rows += group["test_examples"].get<std::uint64_t>();
    right += group["test_accuracy"].get<double>() * group["test_examples"].get<double>();
  }
  EXPECT_EQ(rows, fresh_.ids.size());
  EXPECT_NEAR(right / static_cast<double>(rows), e["test_accuracy"].get<double>(), 1e-12);
  EXPECT_EQ(e["groups"][0]["group"], "Nord");
  EXPECT_EQ(Json::parse(content_of(folder_ / "pictures/evaluation.json")), e);
  expect_refused({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--group-by", "x"},
                 {"a column 'x'"});
}

TEST_F(Predict, ModelsWithoutProbabilitiesGiveMargins) {
  train("run", {"--model", "svm"});
  const std::vector<std::string> lines = predictions();
  EXPECT_EQ(lines[0], "id,prediction,margin");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    ASSERT_EQ(cells[1], std::stod(cells[2]) > 0.0 ? "ja" : "nein") << lines[i];
  }
  EXPECT_NEAR(eval()["auc"].get<double>(), auc_of(lines, fresh_.labels, "ja", 2), 1e-13);
  EXPECT_TRUE(eval()["calibration_error"].is_null());
  expect_refused({"predict", folder_ / "run", "--dataset", folder_ / "new.csv", "--out",
                  folder_ / "none.csv", "--threshold", "0.5"},
                 {"--threshold: expected a model that gives probabilities"});
  for (const char* flag : {"--threshold", "--at-precision", "--at-recall"})
    expect_refused({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", flag, "0.5"},
                   {std::string(flag) + ": expected a model that gives probabilities"});
}

}  // namespace
}  // namespace cudp
