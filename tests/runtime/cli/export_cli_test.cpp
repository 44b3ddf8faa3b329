// `cudp export`: the file of Python answers as `cudp predict` does, cell by cell, and refuses what
// it refuses.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/python.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

class Export : public testing::Test {
 protected:
  Finished cudp(const std::vector<std::string>& arguments) const {
    return run_cudp(folder_, arguments);
  }
  void train(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"train",   "--epsilon", "3",       "--delta",      "1e-5",
                                    "--batch", "50",        "--steps", "20",           "--threads",
                                    "1",       "--quiet",   "--out",   folder_ / "run"};
    all.insert(all.end(), more.begin(), more.end());
    const Finished f = cudp(all);
    ASSERT_EQ(f.exit, 0) << f.err;
  }
  void export_scorer() const {
    const Finished f =
        cudp({"export", folder_ / "run", "--to", "python", "--out", folder_ / "scorer.py"});
    ASSERT_EQ(f.exit, 0) << f.err;
  }

  /// The lines that `cudp predict` and the exported program write of the same file, which must have
  /// the same header, names and predictions, and probabilities within `tolerance`.
  void expect_same_predictions(const std::string& python, const std::string& data,
                               const std::string& to_python = "",
                               std::vector<std::string> flags = {}, double tolerance = 1e-6) const {
    std::vector<std::string> predict = {
        "predict", folder_ / "run",         "--dataset", data, "--threads", "1",
        "--out",   folder_ / "expected.csv"};
    predict.insert(predict.end(), flags.begin(), flags.end());
    const Finished f = cudp(predict);
    ASSERT_EQ(f.exit, 0) << f.err;
    std::string command = python + " " + (folder_ / "scorer.py") + " " +
                          (to_python.empty() ? data : to_python) + " --out " +
                          (folder_ / "found.csv");
    for (const std::string& flag : flags) command += " " + flag;
    const ShellResult r = run_shell(folder_, command);
    ASSERT_EQ(r.exit, 0) << r.err;
    const auto expected = lines_of(content_of(folder_ / "expected.csv"));
    const auto found = lines_of(content_of(folder_ / "found.csv"));
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_GT(expected.size(), 1u);
    EXPECT_EQ(found[0], expected[0]);
    const bool value_only = expected[0].ends_with(",prediction");
    const auto names = static_cast<std::ptrdiff_t>(value_only ? 1 : 2);
    const auto numbers = std::ranges::count(expected[0], ',') + 1 - names;
    double largest = 0.0;
    for (std::size_t i = 1; i < expected.size(); ++i) {
      std::string a = expected[i], b = found[i];
      for (std::ptrdiff_t k = 0; k < numbers; ++k) {
        const std::size_t at = a.rfind(','), there = b.rfind(',');
        ASSERT_NE(there, std::string::npos) << found[i];
        const double x = std::stod(a.substr(at + 1)), y = std::stod(b.substr(there + 1));
        const double error = std::fabs(x - y) / std::fmax(1.0, std::fabs(x));
        EXPECT_TRUE(error <= tolerance)
            << "line " << i + 1 << ": " << expected[i] << " | " << found[i];
        largest = std::fmax(largest, error);
        a.resize(at);
        b.resize(there);
      }
      EXPECT_EQ(b, a) << "line " << i + 1;
    }
    std::printf("%zu rows, largest difference %.2g\n", expected.size() - 1, largest);
  }

  TemporaryFolder folder_;
};

constexpr const char* kVisitsSchema = R"(name = "visits"
missing = ["", "NA", "-9"]
unit = "patient"
max_rows = 2
columns = [
  {name = "visit", kind = "id"},
  {name = "patient", kind = "ignore"},
  {name = "age", kind = "numeric", min = 18, max = 95, fill = 50, edges = [30, 50.5, 70]},
  {name = "lactate", kind = "numeric", min = 0.1, max = 20, transform = "log", fill = 1.5},
  {name = "Ärztin", kind = "categorical", values = ["München", "Köln", "a, \"b\""], missing = "column", unknown = "zeros"},
  {name = "ward", kind = "categorical", values = ["Süd", "Nord", "NA"]},
  {name = "admitted", kind = "date", format = "%d.%m.%Y %H:%M", min = "01.01.2020 00:00", max = "31.12.2023 12:30", fill = "01.06.2021 00:00", edges = ["01.01.2021 00:00", "01.01.2022 00:00"]},
  {name = "died", kind = "label", values = ["NO", "YES"]},
]
)";

/// A row of new visits, in another order than the schema's, without the label.
struct Visit {
  std::string age = "40", lactate = "1.5", doctor = "Köln", ward = "Süd";
  std::string admitted = "01.02.2022 3:04", id = "V";

  std::string line() const {
    return ward + "," + id + ",P," + age + "," + lactate + "," + doctor + "," + admitted + "\n";
  }
};
constexpr const char* kVisitsHeader =
    "\xef\xbb\xbfward,visit,patient,age,lactate,Ärztin,admitted\r\n";

/// Trainings whose predictions are compared have seeds: of a random model a row may be so near the
/// border of two classes that rounding decides.
class ExportedTable : public Export {
 protected:
  void SetUp() override {
    python_ = python_with("numpy");
    if (python_.empty()) GTEST_SKIP() << "python3 with numpy is missing";
    std::string csv = "visit,patient,age,lactate,Ärztin,ward,admitted,died\n";
    std::uint32_t state = 1;
    const auto next = [&](unsigned n) {
      return ((state = state * 1664525u + 1013904223u) >> 16) % n;
    };
    const char* const doctors[] = {"München", "Köln", "\"a, \"\"b\"\"\"", "Bonn", ""};
    for (int i = 0; i < 500; ++i) {
      const unsigned age = 18 + next(78);
      csv += "V" + std::to_string(i) + ",P" + std::to_string(i / 2) + "," + std::to_string(age) +
             ",0." + std::to_string(1 + next(90)) + "," + doctors[next(5)] + "," +
             (next(2) == 0 ? "Süd" : "Nord") + ",1." + std::to_string(1 + next(12)) + "." +
             std::to_string(2020 + next(4)) + " 7:30," + (next(95) < age ? "YES" : "NO") + "\n";
    }
    write_text(folder_ / "visits.csv", csv);
    write_text(folder_ / "schema.toml", kVisitsSchema);
    train({"--dataset", folder_ / "visits.csv", "--schema", folder_ / "schema.toml", "--model",
           "logistic", "--lr", "4", "--ema", "0.9", "--seed", "1"});
    export_scorer();
  }

  std::string python_;
};

/// Cells at and beyond bounds, missing, unknown, quoted, over two lines.
TEST_F(ExportedTable, AnswersAsPredictToRowsThatPredictTakes) {
  std::string csv = kVisitsHeader;
  const auto add = [&](std::string Visit::*member, const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) {
      Visit v;
      v.*member = cell;
      csv += v.line();
    }
  };
  add(&Visit::age, {"18",     "95",   "17.999", "95.0001",      "1e300",
                    "-1e300", "+40",  "-5",     ".5",           "5.",
                    "4e1",    "4E+1", "",       "NA",           "-9",
                    "30",     "50.5", "70",     "29.999999999", "123456789012345678901234567890"});
  add(&Visit::lactate, {"0", "0.1", "20", "1e9", "NA", "-3", "4.9e-324"});
  csv += "  \n\r\n";
  add(&Visit::doctor,
      {"München", "\"a, \"\"b\"\"\"", "unknown", "", "NA", "-9", "日本", "Mu\u0308nchen",
       "\"Köln\"", " Köln ", "\"two\nlines\"", "\"two\r\nlines\"", "K\xf6ln", "Kö\"ln"});
  add(&Visit::ward, {"Süd", "Nord", "NA", "", "-9"});
  add(&Visit::admitted,
      {"31.12.2023 12:30", "31.12.2023 12:31", "1.1.2020 0:00", "29.02.2020 23:59",
       "01.01.0001 00:00", "31.12.9999 23:59", "", "NA", "01.01.2021 00:00", "31.12.2020 23:59"});
  add(&Visit::id, {"\"a \"\"quoted\"\", id\"", "ünï", "", "-9", " blank ", "\" kept \""});
  csv.pop_back();  // no line break behind the last row
  write_text(folder_ / "new.csv", csv);
  expect_same_predictions(python_, folder_ / "new.csv", "", {"--threshold", "0.3"});

  // As a module: mappings of names to texts, numbers or None.
  write_text(folder_ / "module.py", R"(import csv, math, sys
import scorer
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8-sig", errors="surrogateescape", newline="")))
rows = [{k: v.strip(" ") for k, v in row.items()} for row in rows if row["age"]][:20]
texts = scorer.score(rows)
for row in rows:
    row["age"] = None if row["age"] in ("", "NA", "-9") else float(row["age"])
    row["lactate"] = math.nan if row["lactate"] in ("", "NA") else float(row["lactate"])
assert texts.shape == (len(rows), 2) and abs(texts - scorer.score(rows)).max() == 0.0
assert len(scorer.FEATURES) == scorer.encode(rows).shape[1] == 17 and scorer.CLASSES == ["NO", "YES"]
try:
    scorer.score([{"age": 3}])
except scorer.BadInput as fault:
    print(fault)
)");
  const ShellResult r = run_shell(
      folder_, "cd " + folder_.path().string() + " && " + python_ + " -B module.py new.csv");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "row 0: expected a column 'lactate', found none\n");
}

/// predict adds up in float32: where a logit has large terms, so has its rounding.
TEST_F(ExportedTable, OfLargeLogitsAnswersWithinAMillionthOfTheirTerms) {
  fs::remove_all(folder_ / "run");
  train({"--dataset", folder_ / "visits.csv", "--schema", folder_ / "schema.toml", "--model",
         "logistic", "--lr", "3000", "--seed", "1"});
  export_scorer();
  std::string csv = kVisitsHeader;
  for (int i = 0; i < 2000; ++i)
    csv += Visit{.age = std::to_string(18 + i % 78),
                 .lactate = std::to_string(0.1 + 0.009 * i),
                 .doctor = i % 3 == 0 ? "Köln" : "München",
                 .ward = i % 2 == 0 ? "Nord" : "Süd"}
               .line();
  write_text(folder_ / "new.csv", csv);
  write_text(folder_ / "terms.py", R"(import csv
import numpy as np
import scorer
x = np.abs(scorer.encode(csv.DictReader(open("new.csv", encoding="utf-8-sig", newline=""))))
weights, bias = (np.abs(t) for t in scorer._TENSORS)
print((x @ weights.reshape(-1) + bias).max())
)");
  const ShellResult r =
      run_shell(folder_, "cd " + folder_.path().string() + " && " + python_ + " -B terms.py");
  ASSERT_EQ(r.exit, 0) << r.err;
  const double terms = std::stod(r.out);
  EXPECT_GT(terms, 100.0);
  expect_same_predictions(python_, folder_ / "new.csv", "", {}, 1e-6 * terms);
}

/// With --malformed missing a cell that is read otherwise gives another probability, whichever of
/// the two refuses it; without, both end with exit code 2 at the same place and write nothing.
TEST_F(ExportedTable, RefusesWhatPredictRefuses) {
  const std::vector<std::string> numbers = {
      "nan",      "NaN",    "inf",    "-inf",  "infinity", "1e400",  "-1e400", "1e-400",
      "1e-310",   "3e-324", "2e-324", "1e308", "1.8e308",  "0x12",   "1e",     "1e+",
      "e5",       ".",      "-.",     "+.",    "+-5",      "-+5",    "++5",    "1_000",
      "\"1,5\"",  "١٢",     "１２",   "1e05",  "00018",    "1.e1",   "--5",    "0e999",
      "0.0e-500", "70x",    "70\t",   "-0",    "-0e-400",  "1d5",    "5f",     "True",
      "null",     "?",      "-9.0",   "-09",   "- 5",      "1e-5000"};
  const std::vector<std::string> dates = {
      "1.1.2020 0:0",   "001.01.2020 00:00", "1.1.20 0:0",     "1.13.2020 0:0",  "29.02.2021 0:0",
      "29.02.2024 0:0", "31.04.2021 0:0",    "1.1.2020 24:00", "1.1.2020 23:60", "1.1.2020  0:00",
      "1.1.0000 0:00",  "1.1.0001 0:00",     "1.1.12020 0:00", "0.1.2020 0:0",   "1.0.2020 0:0",
      "1.1.2020",       "1-1-2020 0:0",      "1.1.2020 0:0:0", "٠1.1.2020 0:0",  "1.1.2020 0:0 "};
  std::string csv = kVisitsHeader;
  std::vector<std::string> lines;
  for (const std::string& cell : numbers) {
    lines.push_back(Visit{.age = cell}.line());
    lines.push_back(Visit{.lactate = cell}.line());
  }
  for (const std::string& cell : dates) lines.push_back(Visit{.admitted = cell}.line());
  for (const char* cell : {"Westen", "süd", "Su\u0308d", "S\374d", "\"Süd\"x"})
    lines.push_back(Visit{.ward = cell}.line());
  lines.insert(lines.end(), {"too,few\n", Visit{}.line(), "a,b,c,d,e,f,g,h\n", ",,,,,,\n",
                             Visit{.doctor = "\"open"}.line(), Visit{.doctor = "x\"y,\"z"}.line()});
  for (const std::string& line : lines) csv += line;
  write_text(folder_ / "new.csv", csv);
  expect_same_predictions(python_, folder_ / "new.csv", "", {"--malformed", "missing"});

  for (const char* cell : {"nan", "1e400", "", "70"}) {
    write_text(folder_ / "one.csv", kVisitsHeader + Visit{}.line() + Visit{.age = cell}.line() +
                                        Visit{.ward = "Westen"}.line());
    const Finished f = cudp({"predict", folder_ / "run", "--dataset", folder_ / "one.csv", "--out",
                             folder_ / "never.csv"});
    const ShellResult r =
        run_shell(folder_, python_ + " " + (folder_ / "scorer.py") + " " + (folder_ / "one.csv") +
                               " --out " + (folder_ / "never.csv"));
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(r.exit, 2);
    const std::string place = std::string(cell).find('n') == 0 || std::string(cell) == "1e400"
                                  ? "line 3, column 'age': expected a finite number, found '"
                                  : "line 4, column 'ward': expected one of ";
    EXPECT_NE(f.err.find(place), std::string::npos) << f.err;
    EXPECT_NE(r.err.find(place), std::string::npos) << r.err;
    // The first line says that a model with a seed is not for release.
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 2) << r.err;
    EXPECT_FALSE(fs::exists(folder_ / "never.csv"));
  }
}

/// A number is predicted, cells have a decimal comma, and the file has no header.
TEST_F(Export, OfARegressionWithoutAHeaderAnswersAsPredict) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is missing";
  std::string csv;
  for (int i = 0; i < 300; ++i)
    csv += std::to_string(i % 97) + ",5; " + (i % 3 == 0 ? "a" : "b c") + " ;" +
           std::to_string(i % 97 / 2) + "\n";
  write_text(folder_ / "stays.csv", csv);
  write_text(folder_ / "schema.toml", R"(delimiter = ";"
header = false
decimal = ","
skip_prefix = "%"
quotes = false
columns = [
  {name = "x", kind = "numeric", min = 0, max = 97.5},
  {name = "kind", kind = "categorical", values = ["a", "b c"]},
  {name = "days", kind = "target", min = -10, max = 40},
]
)");
  train({"--dataset", folder_ / "stays.csv", "--schema", folder_ / "schema.toml", "--model",
         "linear", "--lr", "0.5", "--seed", "1"});
  export_scorer();
  write_text(folder_ / "new.csv", "% a comment\n1,5;a\n97,5 ;b c\n+3;a\n1e2;b c\n\n-4,25;a");
  expect_same_predictions(python, folder_ / "new.csv");
}

/// Features: a matrix that is normalised row by row.
TEST_F(Export, OfAMatrixAnswersAsPredict) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is missing";
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < 6; ++k)
      x.push_back(static_cast<float>((i * (k + 3)) % 17) - (i % 3 == k ? 9.0f : 2.0f));
    y.push_back(i % 3);
  }
  x[6] = 3e38f;
  write_text(folder_ / "x.npy", npy_floats(200, x));
  write_text(folder_ / "y.npy", npy_labels(y));
  train({"--dataset", folder_ / "x.npy", "--labels", folder_ / "y.npy", "--classes", "3",
         "--normalise", "unit", "--model", "mlp", "--lr", "0.1", "--seed", "1"});
  export_scorer();
  expect_same_predictions(python, folder_ / "x.npy");
}

/// Images: bytes through convolutions, pooling and group norm.
TEST_F(Export, OfImagesAnswersAsPredict) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is missing";
  std::string pixels(std::size_t{60} * 100, '\0'), labels;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<char>((i * i + i / 100 * 37) % 251);
  for (std::size_t i = 0; i < 60; ++i) labels += static_cast<char>(i % 10);
  fs::create_directory(folder_ / "images");
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = folder_ / (std::string("images/") + part);
    write_text(stem + "-images-idx3-ubyte", idx_images(60, 10, 10, pixels));
    write_text(stem + "-labels-idx1-ubyte", idx_labels(60, labels));
  }
  write_text(folder_ / "model.toml", R"(name = "small"
layers = [
  { type = "conv2d", name = "a", out = 6, kernel = 3, pad = 1 },
  { type = "groupnorm", name = "n", groups = 3 },
  { type = "tempered_sigmoid" },
  { type = "maxpool", kernel = 3, stride = 2 },
  { type = "conv2d", name = "b", out = 5, kernel = 2, stride = 2 },
  { type = "tanh" },
  { type = "avgpool", kernel = 2, stride = 1 },
  { type = "relu" },
  { type = "dense", name = "c", out = "outputs" },
]
)");
  train({"--dataset", folder_ / "images", "--model", folder_ / "model.toml", "--size-is-public",
         "--seed", "1"});
  export_scorer();
  expect_same_predictions(python, folder_ / "images", folder_ / "images/t10k-images-idx3-ubyte");
}

/// Which models are exported, which are not, and what the files say of a seeded run.
TEST_F(Export, IsOfReleasedModelsAndSaysWhatIsNotForRelease) {
  const SmallTable t = write_small_table(folder_, 300);
  const auto table = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--dataset", t.table, "--schema", t.schema, "--model", "logistic"});
    train(more);
  };
  const auto exported = [&](const std::string& to) {
    return cudp({"export", folder_ / "run", "--to", to, "--out", "-"});
  };
  table({"--seed", "3"});
  for (const char* to : {"python", "onnx"}) {
    const Finished f = exported(to);
    EXPECT_EQ(f.exit, 0) << f.err;
    EXPECT_NE(f.out.find("NOT FOR RELEASE: seed"), std::string::npos) << f.out.substr(0, 2000);
    EXPECT_NE(f.err.find("NOT for release: seed"), std::string::npos) << f.err;
  }
  const Finished out =
      cudp({"export", folder_ / "run", "--to", "onnx", "--out", folder_ / "seeded.onnx"});
  EXPECT_EQ(out.exit, 0) << out.err;
  EXPECT_EQ(fs::status(folder_ / "seeded.onnx").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  // Without the files beside it nothing is known of the model.
  fs::rename(folder_ / "run/release/model.safetensors", folder_ / "alone.safetensors");
  const Finished alone =
      cudp({"export", folder_ / "alone.safetensors", "--to", "onnx", "--out", "-"});
  EXPECT_EQ(alone.exit, 0) << alone.err;
  EXPECT_EQ(alone.out.find("NOT FOR RELEASE"), std::string::npos);

  fs::remove_all(folder_ / "run");
  const Finished f =
      cudp({"train", "--dataset", t.table, "--schema", t.schema, "--model", "logistic", "--method",
            "sgd", "--batch", "50", "--steps", "3", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  for (const std::string place : {"run", "run/private", "run/private/model.safetensors"}) {
    const Finished no =
        cudp({"export", folder_ / place, "--to", "python", "--out", folder_ / "never.py"});
    EXPECT_EQ(no.exit, 2) << place;
    EXPECT_NE(no.err.find("without privacy"), std::string::npos) << no.err;
    EXPECT_FALSE(fs::exists(folder_ / "never.py"));
  }
  for (const auto& [arguments, expected] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"export", folder_ / "run"}, "expected --to python or --to onnx, found none"},
           {{"export", folder_ / "run", "--to", "java"}, "--to: expected one of python, onnx"},
           {{"export", folder_ / "nowhere", "--to", "onnx"}, "expected a run folder"}}) {
    const Finished no = cudp(arguments);
    EXPECT_EQ(no.exit, 2);
    EXPECT_NE(no.err.find(expected), std::string::npos) << no.err;
  }
}

TEST_F(Export, OfTextsAndScatteringIsOnnxAlone) {
  const Finished f = cudp({"train", "--dataset", "sentences", "--model", "sentences-lstm",
                           "--epsilon", "8", "--delta", "1e-5", "--batch", "20", "--steps", "2",
                           "--threads", "1", "--quiet", "--out", folder_ / "texts"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Finished no = cudp({"export", folder_ / "texts", "--to", "python", "--out", "-"});
  EXPECT_EQ(no.exit, 2);
  EXPECT_EQ(no.out, "");
  EXPECT_NE(no.err.find("texts, whose tokenizer and words are not exported"), std::string::npos)
      << no.err;
  const Finished yes = cudp({"export", folder_ / "texts", "--to", "onnx", "--out", "-"});
  EXPECT_EQ(yes.exit, 0) << yes.err;
  EXPECT_NE(yes.out.find("lengths"), std::string::npos);
}

}  // namespace
}  // namespace cudp
