#pragma once
// A trained model of patients, and predictions of new ones by the program.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

namespace cudp {

/// Returns the cells of a line that has no quotes.
inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

/// Table of patients with missing cells, names that are not ASCII, and an id. The label is `died`.
struct PatientsWithNames {
  std::string csv;
  std::vector<std::string> ids;
  std::vector<std::string> labels;
  std::string without_label;
};

inline PatientsWithNames patients_with_names(std::size_t rows, std::uint32_t seed) {
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

inline constexpr const char* kScoredPatientsSchema = R"(name = "patients"
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
    write_text(folder_ / "schema.toml", kScoredPatientsSchema);
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
  nlohmann::json eval(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"});
    const Finished f = cudp(more);
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.exit == 0 ? nlohmann::json::parse(f.out) : nlohmann::json();
  }
  /// Expects exit code 2, one line with these words, and no new files.
  void expect_refused(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& words) const {
    const auto files = [&] {
      std::vector<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
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

}  // namespace cudp
