// `cudp predict`, what a released model knows of its inputs, and `cudp eval` beside it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/python.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Cells of a line without quotes.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

/// Patients with gaps, names that are no ASCII, and an id. The label is `died`.
struct PatientsWithNames {
  std::string csv;
  std::vector<std::string> ids;
  std::vector<std::string> labels;
  std::string without_label;
};

PatientsWithNames patients_with_names(std::size_t rows, std::uint32_t seed) {
  std::uint32_t state = seed;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  PatientsWithNames p;
  p.csv = "Ärztin,age,ward,died,patient\n";
  p.without_label = "age,Ärztin,ward,patient\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const unsigned age = 20 + next() % 70;
    const std::string cell = next() % 11 == 0 ? "" : std::to_string(age);
    const std::string ward = std::vector<std::string>{"Süd", "Nord", "\"a, b\""}[next() % 3];
    const std::string doctor = next() % 2 == 0 ? "München" : "NA";
    p.ids.push_back("P-" + std::to_string(7 * i + 3));
    p.labels.push_back(age + next() % 60 + (ward == "Süd" ? 20 : 0) > 110 ? "ja" : "nein");
    p.csv += doctor + "," + cell + "," + ward + "," + p.labels.back() + "," + p.ids.back() + "\n";
    p.without_label += cell + "," + doctor + "," + ward + "," + p.ids.back() + "\n";
  }
  return p;
}

constexpr const char* kSchema = R"(name = "patients"
columns = [
  {name = "patient", kind = "id"},
  {name = "Ärztin", kind = "categorical", values = ["München", "Köln"], unknown = "zeros"},
  {name = "age", kind = "numeric", min = 18, max = 95, fill = 50},
  {name = "ward", kind = "categorical", values = ["Süd", "Nord", "a, b"]},
  {name = "died", kind = "label", values = ["nein", "ja"]},
]
)";

class Predict : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_ / "schema.toml", kSchema);
    write_text(folder_ / "train.csv", patients_with_names(3000, 1).csv);
    write_text(folder_ / "new.csv", fresh_.csv);
  }

  Finished cudp(const std::vector<std::string>& arguments) const {
    return run_cudp(folder_, arguments);
  }
  void train(const std::string& out = "run", std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train",
                               "--dataset",
                               folder_ / "train.csv",
                               "--schema",
                               folder_ / "schema.toml",
                               "--epsilon",
                               "3",
                               "--delta",
                               "1e-5",
                               "--batch",
                               "100",
                               "--epochs",
                               "10",
                               "--lr",
                               "2",
                               "--threads",
                               "1",
                               "--quiet",
                               "--out",
                               folder_ / out});
    if (std::ranges::find(more, "--model") == more.end())
      more.insert(more.end(), {"--model", "logistic"});
    const Finished f = cudp(more);
    ASSERT_EQ(f.exit, 0) << f.err;
  }
  Finished predict(std::vector<std::string> more) const {
    more.insert(more.begin(), {"predict", folder_ / "run"});
    return cudp(more);
  }
  std::vector<std::string> predictions(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--dataset", folder_ / "new.csv", "--out", folder_ / "out.csv"});
    const Finished f = predict(more);
    EXPECT_EQ(f.exit, 0) << f.err;
    return lines_of(content_of(folder_ / "out.csv"));
  }
  Json eval(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"});
    const Finished f = cudp(more);
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.exit == 0 ? Json::parse(f.out) : Json();
  }
  /// Exit code 2, one line with these words, and no file beyond those that were there.
  void expect_refused(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& words) const {
    const auto files = [&] {
      std::vector<std::string> names;
      for (const auto& entry : fs::directory_iterator(folder_.path()))
        if (const std::string name = entry.path().filename().string();
            name != "stdout" && name != "stderr")
          names.push_back(name);
      std::ranges::sort(names);
      return names;
    };
    const std::vector<std::string> before = files();
    const Finished f = cudp(arguments);
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    for (const std::string& word : words) EXPECT_NE(f.err.find(word), std::string::npos) << f.err;
    EXPECT_EQ(files(), before);
  }

  TemporaryFolder folder_;
  PatientsWithNames fresh_ = patients_with_names(9000, 2);  ///< more than two blocks
};

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
  train();
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

/// What differs between the schema that a model was trained with and one given for new rows.
struct Difference {
  const char* from;
  const char* to;
  std::vector<std::string> words;
};

TEST_F(Predict, RefusesASchemaThatIsNotTheModels) {
  train();
  const std::vector<Difference> all = {
      {R"(["nein", "ja"])",
       R"(["ja", "nein"])",
       {"column 'died'", "expected 'nein' as class 1", "found 'ja'"}},
      {R"(["nein", "ja"])", R"(["nein", "ja", "?"])", {"expected none as class 3", "found '?'"}},
      {"max = 95", "max = 100", {"column 'age'", "expected bounds 18 to 95", "bounds 18 to 100"}},
      {"fill = 50", "fill = 51", {"column 'age'", "fill 50", "fill 51"}},
      {"fill = 50", "fill = 50, edges = [30]", {"column 'age'", "edges []", "edges [30]"}},
      {"fill = 50", "fill = 50, transform = \"log\"", {"column 'age'", "transform linear"}},
      {R"("Süd", "Nord", "a, b")",
       R"("Nord", "Süd", "a, b")",
       {"column 'ward'", "expected 'Süd' as category 1", "found 'Nord'"}},
      {R"("Süd", "Nord", "a, b")", R"("Süd", "Nord")", {"expected 'a, b' as category 3"}},
      {R"({name = "age", kind = "numeric", min = 18, max = 95, fill = 50})",
       R"({name = "age", kind = "ignore"})",
       {"expected 'age'", "found 'ward'"}},
      {R"({name = "patient", kind = "id"})",
       R"({name = "patient", kind = "numeric", min = 0, max = 1})",
       {"feature column 1", "expected 'Ärztin'", "found 'patient'"}},
      {R"(name = "ward", kind = "categorical", values = ["Süd", "Nord", "a, b"])",
       R"(name = "ward", kind = "numeric", min = 0, max = 1)",
       {"column 'ward'", "expected kind categorical", "found numeric"}},
      {R"(name = "died")", R"(name = "dead")", {"expected a label 'died'", "found 'dead'"}},
  };
  for (const Difference& d : all) {
    std::string schema = kSchema;
    ASSERT_NE(schema.find(d.from), std::string::npos) << d.from;
    schema.replace(schema.find(d.from), std::string(d.from).size(), d.to);
    write_text(folder_ / "other.toml", schema);
    for (const char* command : {"eval", "predict"}) {
      std::vector<std::string> a = {command,     folder_ / "run",
                                    "--dataset", folder_ / "new.csv",
                                    "--schema",  folder_ / "other.toml"};
      if (command == std::string("predict")) a.insert(a.end(), {"--out", folder_ / "none.csv"});
      SCOPED_TRACE(d.to);
      std::vector<std::string> words = d.words;
      words.push_back((folder_ / "run") + " was trained with");
      expect_refused(a, words);
    }
  }
}

/// The file may be written otherwise, and a schema may leave open what the model knows.
TEST_F(Predict, TakesASchemaOfAnotherFileOfTheSameColumns) {
  train();
  const std::vector<std::string> expected = predictions();
  std::string text = fresh_.csv;
  for (std::size_t at = 0; (at = text.find("\"a, b\"", at)) != std::string::npos; ++at)
    text.replace(at, 6, "a# b");
  std::ranges::replace(text, ',', ';');
  std::ranges::replace(text, '#', ',');
  write_text(folder_ / "new.csv", text);
  write_text(folder_ / "other.toml", R"(delimiter = ";"
columns = [
  {name = "patient", kind = "id"},
  {name = "Ärztin", kind = "categorical", unknown = "zeros"},
  {name = "age", kind = "numeric", fill = 50},
  {name = "ward", kind = "categorical"},
  {name = "died", kind = "label"},
]
)");
  EXPECT_EQ(predictions({"--schema", folder_ / "other.toml"}), expected);
}

/// Columns that give no feature are not needed, and others are dropped; a schema of another model
/// that lies beside the table is left alone. Each is told in one line.
TEST_F(Predict, NeedsTheColumnsOfItsFeaturesAlone) {
  train();
  const std::vector<std::string> expected = predictions();
  std::string few = "ward,Ärztin,weight,age,died,\n";
  const std::vector<std::string> lines = lines_of(fresh_.csv);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string& l = lines[i];  // doctor,age,ward,died,patient; a ward may have a comma
    const std::size_t doctor = l.find(','), age = l.find(',', doctor + 1);
    const std::size_t patient = l.rfind(','), died = l.rfind(',', patient - 1);
    few += l.substr(age + 1, died - age - 1) + "," + l.substr(0, doctor) + ",70," +
           l.substr(doctor + 1, age - doctor - 1) + "," + l.substr(died + 1, patient - died - 1) +
           ",\n";
  }
  write_text(folder_ / "new.csv", few);
  write_text(folder_ / "new.csv.schema.toml", R"(columns = [
  {name = "age", kind = "numeric", min = 0, max = 1},
  {name = "weight", kind = "label", values = ["a", "b"]},
])");
  const Finished f = predict({"--dataset", folder_ / "new.csv", "--out", folder_ / "out.csv"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("the schema next to the table is not used: " +
                       (folder_ / "new.csv.schema.toml") + ", "),
            std::string::npos)
      << f.err;
  EXPECT_NE(f.err.find("new.csv: 2 columns that the model was not trained with are not used: "
                       "'weight', ''\n"),
            std::string::npos)
      << f.err;
  const std::vector<std::string> found = lines_of(content_of(folder_ / "out.csv"));
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(found[0], "row,prediction,p_nein,p_ja");  // there are no ids
  for (std::size_t i = 1; i < found.size(); ++i)
    ASSERT_EQ(found[i].substr(found[i].find(',')), expected[i].substr(expected[i].find(',')));
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_NE(e.err.find("are not used: 'weight', ''"), std::string::npos) << e.err;
  // One that cannot be read is left alone, too; but not one that is given.
  write_text(folder_ / "new.csv.schema.toml", "columns = [");
  EXPECT_EQ(
      Json::parse(cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"}).out),
      Json::parse(e.out));
  const Finished given = cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv",
                               "--schema", folder_ / "new.csv.schema.toml"});
  EXPECT_EQ(given.exit, 2) << given.err;
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
  const std::string threshold = Json(found["at_recall"]["threshold"]).dump();
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

TEST_F(Predict, ModelsAndReleasesKnowTheirInputs) {
  train("run", {"--seed", "3"});
  train("secret");
  const TensorFile model =
      decode_safetensors(content_of(folder_ / "run/release/model.safetensors"), "model");
  EXPECT_EQ(model.metadata.at("schema"), content_of(folder_ / "run/release/schema.toml"));
  EXPECT_EQ(Json::parse(model.metadata.at("feature-names")),
            (Json{"Ärztin=München", "Ärztin=Köln", "age", "ward=Süd", "ward=Nord", "ward=a, b"}));
  EXPECT_FALSE(model.metadata.contains("pixel-scale"));
  const std::string note = content_of(folder_ / "run/release/NOT-FOR-RELEASE.txt");
  EXPECT_NE(note.find("Not for release"), std::string::npos);
  EXPECT_NE(note.find("seed"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "secret/release/NOT-FOR-RELEASE.txt"));
}

/// What a schema left open was read from private rows: the release holds it, and says that it is
/// not for release. With it the model needs no schema either.
TEST_F(Predict, BoundsOfPrivateRowsAreReleasedOnlyAsAcceptedAndFlagged) {
  const SmallTable table = write_small_table(folder_);
  const Finished f = cudp({"train", "--dataset", table.table, "--accept-private-bounds", "--model",
                           "logistic", "--epsilon", "3", "--delta", "1e-5", "--batch", "64",
                           "--steps", "60", "--threads", "1", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(content_of(folder_ / "run/release/NOT-FOR-RELEASE.txt").find("read from private rows"),
            std::string::npos);
  EXPECT_NE(content_of(folder_ / "run/release/schema.toml").find("max = 99"), std::string::npos);
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", table.test, "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_GT(Json::parse(e.out)["test_accuracy"], 0.6);
}

TEST_F(Predict, OfTexts) {
  std::string notes = "note,ill,who\n";
  std::string words = "bad\ngood\nday\n";
  for (int i = 0; i < 400; ++i)
    notes += std::string(i % 2 == 0 ? "a good day,no" : "\"a bad day, so bad\",yes") + ",n" +
             std::to_string(i) + "\n";
  write_text(folder_ / "notes.csv", notes);
  write_text(folder_ / "words.txt", words);
  write_text(folder_ / "notes.toml", R"(columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"]},
  {name = "who", kind = "id"},
]
)");
  const Finished f = cudp({"train",
                           "--dataset",
                           folder_ / "notes.csv",
                           "--schema",
                           folder_ / "notes.toml",
                           "--vocabulary",
                           folder_ / "words.txt",
                           "--tokens",
                           "8",
                           "--model",
                           "sentences-lstm",
                           "--method",
                           "sgd",
                           "--optimizer",
                           "adam",
                           "--lr",
                           "0.01",
                           "--batch",
                           "50",
                           "--epochs",
                           "5",
                           "--threads",
                           "1",
                           "--quiet",
                           "--out",
                           folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  write_text(folder_ / "new.csv", "who,note\nx,a good day\ny,\"a bad day, so bad\"\n");
  const std::vector<std::string> lines = predictions();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "id,prediction,p_no,p_yes");
  EXPECT_TRUE(lines[1].starts_with("x,no,")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("y,yes,")) << lines[2];
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

/// Images have row numbers and classes that are numbers. The scale of pixels is the model's.
TEST_F(Predict, OfImages) {
  std::string pixels;
  std::string labels;
  for (int i = 0; i < 200; ++i) {
    const int label = i % 3;
    labels += static_cast<char>(label);
    for (int p = 0; p < 16; ++p)
      pixels += static_cast<char>(p / 5 == label ? 200 + (i * 7 + p) % 50 : (i * 5 + p * 3) % 60);
  }
  fs::create_directory(folder_ / "images");
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = folder_ / (std::string("images/") + part);
    write_text(stem + "-images-idx3-ubyte", idx_images(200, 4, 4, pixels));
    write_text(stem + "-labels-idx1-ubyte", idx_labels(200, labels));
  }
  const Finished trained = cudp({"train", "--dataset", folder_ / "images", "--classes", "3",
                                 "--model", "mlp", "--method", "sgd", "--batch", "50", "--epochs",
                                 "20", "--threads", "1", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto out = [&](const std::string& model) {
    const Finished f = cudp({"predict", model, "--dataset", folder_ / "images", "--out", "-"});
    EXPECT_EQ(f.exit, 0) << f.err;
    return lines_of(f.out);
  };
  const std::vector<std::string> lines = out(folder_ / "run");
  ASSERT_EQ(lines.size(), 201u);
  EXPECT_EQ(lines[0], "row,prediction,p_0,p_1,p_2");
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::string> cells = cells_of(lines[static_cast<std::size_t>(i) + 1]);
    EXPECT_EQ(cells[0], std::to_string(i + 1));
    right += cells[1] == std::to_string(i % 3) ? 1 : 0;
  }
  EXPECT_GT(right, 180);
  TensorFile model =
      decode_safetensors(content_of(folder_ / "run/private/model.safetensors"), "model");
  EXPECT_EQ(std::stof(model.metadata.at("pixel-scale")), 1.0f / 255.0f);
  EXPECT_EQ(model.metadata.at("pixel-shift"), "0");
  model.metadata["pixel-scale"] = "0";  // every image is the same
  write_text(folder_ / "black.safetensors", encode_safetensors(model));
  const std::vector<std::string> black = out(folder_ / "black.safetensors");
  for (std::size_t i = 2; i < black.size(); ++i)
    EXPECT_EQ(black[i].substr(black[i].find(',')), black[1].substr(black[1].find(',')));
  model.metadata["pixel-scale"] = "large";
  write_text(folder_ / "black.safetensors", encode_safetensors(model));
  expect_refused(
      {"predict", folder_ / "black.safetensors", "--dataset", folder_ / "images", "--out", "-"},
      {"pixel-scale: expected a finite number, found 'large'"});
}

/// The n-th block of Python on the guide's page, put into a file.
std::string python_of_guide(const TemporaryFolder& folder, int n) {
  const std::string page = content_of(golden_file("published_deltas.json").parent_path() /
                                      "../../runtime/guide/predictions.md");
  std::size_t begin = 0;
  for (int i = 0; i <= n; ++i) begin = page.find("```python\n", begin) + 10;
  const std::string file = folder / ("guide" + std::to_string(n) + ".py");
  write_text(file, page.substr(begin, page.find("```", begin) - begin));
  return file;
}

TEST_F(Predict, TheGuidesPythonReproducesAccuraciesOfATable) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is missing";
  train();
  const Finished f =
      cudp({"export", folder_ / "run", "--to", "python", "--out", folder_ / "scorer.py"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const ShellResult r = run_shell(folder_, python + " -B " + python_of_guide(folder_, 0) + " " +
                                               (folder_ / "new.csv") + " died");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(std::stod(r.out), eval()["test_accuracy"].get<double>());
}

TEST_F(Predict, TheGuidesPythonReproducesAccuraciesOfACnn) {
  const std::string python = python_with("numpy, safetensors, torch");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy, safetensors and torch is missing";
  std::string pixels(300 * 784, '\0');
  std::string labels;
  for (std::size_t i = 0; i < 300; ++i) {
    labels += static_cast<char>(i % 10);
    for (std::size_t p = 0; p < 784; ++p)
      pixels[784 * i + p] =
          static_cast<char>(p / 78 == i % 10 ? 120 + (i * p) % 130 : (i + p) % 90);
  }
  fs::create_directory(folder_ / "images");
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = folder_ / (std::string("images/") + part);
    write_text(stem + "-images-idx3-ubyte", idx_images(300, 28, 28, pixels));
    write_text(stem + "-labels-idx1-ubyte", idx_labels(300, labels));
  }
  const Finished f = cudp({"train", "--dataset", folder_ / "images", "--model", "cnn", "--epsilon",
                           "8", "--delta", "1e-5", "--batch", "60", "--steps", "30", "--threads",
                           "1", "--size-is-public", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", folder_ / "images", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  const ShellResult r =
      run_shell(folder_, python + " " + python_of_guide(folder_, 1) + " " +
                             (folder_ / "run/release") + " " + (folder_ / "images"));
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_NEAR(std::stod(r.out), Json::parse(e.out)["test_accuracy"].get<double>(), 0.5 / 300);
}

}  // namespace
}  // namespace cudp
