// A hospital's way from a CSV without a schema to a judged threshold, by the commands of the
// guide's page (runtime/guide/threshold.md), which are read from the page itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "tests/support/cudp_process.hpp"
#include "tests/support/python.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Visits to a hospital, written as its system exports them. A patient has one to five of them, on
/// any days of five years. Deaths (3.5 %) follow age, pulse, lactate, the ward and whether it was
/// an emergency; a twelfth of the cells of pulse, lactate and emergency is empty. Of today's visits
/// neither the patient nor the outcome is in the table.
std::string visits(std::size_t rows, unsigned seed, bool today = false) {
  constexpr const char* kVisitWards[] = {"Chirurgie", "Geburtshilfe", "Kardiologie", "Süd"};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto cell = [&](const std::string& text) {
    return random() % 12 == 0 ? std::string() : text;
  };
  std::string csv = today ? "" : "patient_id,";
  csv += "visit_id,admitted,ward,age,pulse,lactate,emergency";
  csv += today ? "\n" : ",died\n";
  double age = 0.0;
  std::size_t patient = 0, left = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (left == 0) {
      age = std::clamp(58.0 + 18.0 * normal(random), 0.0, 104.0);
      left = 1 + static_cast<std::size_t>(std::min(4.0, -std::log(1.0 - uniform(random))));
      ++patient;
    }
    --left;
    const std::size_t ward = random() % 4;
    const bool emergency = random() % 3 == 0;
    const double pulse = 80.0 + 14.0 * normal(random) + (emergency ? 8.0 : 0.0);
    const double lactate = std::exp(0.35 + 0.5 * normal(random));
    const double z = -4.9 + 0.06 * (age - 58.0) + 0.03 * (pulse - 80.0) + 0.55 * (lactate - 1.6) +
                     (ward == 2   ? 1.2
                      : ward == 1 ? -1.0
                                  : 0.0) +
                     (emergency ? 0.9 : 0.0);
    const bool died = uniform(random) < 1.0 / (1.0 + std::exp(-z));
    if (!today) csv += fmt::format("P{}-{:05},", seed, patient);
    csv += fmt::format("V{}-{:06},20{:02}-{:02}-{:02},{},{:.0f},{},{},{}", seed, i,
                       19 + random() % 5, 1 + random() % 12, 1 + random() % 28, kVisitWards[ward],
                       age, cell(fmt::format("{:.0f}", pulse)),
                       cell(fmt::format("{:.1f}", lactate)), cell(emergency ? "yes" : "no"));
    csv += today ? "\n" : died ? ",yes\n" : ",no\n";
  }
  return csv;
}

/// The blocks of shell commands on a page, in order.
std::vector<std::string> shell_blocks(const std::string& page) {
  std::vector<std::string> blocks;
  const std::string open = "```sh\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    at += open.size();
    blocks.push_back(page.substr(at, page.find("```", at) - at));
  }
  return blocks;
}

/// The rows of a CSV without quotes, as mappings of names to cells.
std::vector<std::map<std::string, std::string>> rows_of(const std::string& csv) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> names;
  for (const std::string& line : lines_of(csv)) {
    std::vector<std::string> cells(1);
    for (const char c : line) c == ',' ? cells.emplace_back() : (cells.back() += c, cells.back());
    if (names.empty()) {
      names = cells;
      continue;
    }
    EXPECT_EQ(cells.size(), names.size()) << line;
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(cells.size(), names.size()); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

TEST(ThresholdStory, TheGuidesCommandsLeadFromACsvToAJudgedThreshold) {
  const auto start = std::chrono::steady_clock::now();
  const TemporaryFolder folder;
  write_text(folder / "visits.csv", visits(24'000, 1));
  write_text(folder / "visits_2023.csv", visits(6'000, 2));
  const std::string newest = visits(6'000, 3);
  write_text(folder / "visits_2024.csv", newest);
  write_text(folder / "today.csv", visits(40, 4, true));

  std::vector<std::string> blocks = shell_blocks(content_of(
      golden_file("").parent_path() / ".." / ".." / "runtime" / "guide" / "threshold.md"));
  ASSERT_EQ(blocks.size(), 8u);
  ASSERT_TRUE(blocks.back().starts_with("python3 scorer.py "));
  const std::string python = python_with("numpy");
  if (python.empty()) blocks.pop_back();
  std::string script = "set -eu\ncudp() { '" + std::string(cudp_binary()) + "' \"$@\"; }\n";
  if (!python.empty()) script += "python3() { command " + python + " \"$@\"; }\n";
  for (const std::string& block : blocks) script += block;
  script += "echo \"$threshold\" > threshold.txt\n";
  write_text(folder / "story.sh", script);
  const ShellResult r = run_shell(folder, "cd '" + folder.path().string() + "' && sh story.sh");
  ASSERT_EQ(r.exit, 0) << r.err;

  // A certificate for patients, at the epsilon that was asked for, of a run that may be published.
  const auto certificate =
      nlohmann::json::parse(content_of(folder / "runs/visits/release/privacy.json"));
  EXPECT_EQ(certificate["unit"], "patient_id");
  EXPECT_EQ(certificate["max_rows"], 3);
  EXPECT_LE(certificate["epsilon"].get<double>(), 1.0);
  EXPECT_TRUE(certificate["for_release"]);
  EXPECT_EQ(certificate["status"], "finished");
  EXPECT_NE(r.out.find("patient_id"), std::string::npos) << "cudp account says whose privacy";

  // What is said of the threshold on newest rows is what predictions of these rows show.
  const std::string threshold = lines_of(content_of(folder / "threshold.txt")).at(0);
  EXPECT_GT(std::stod(threshold), 0.0);
  EXPECT_LT(std::stod(threshold), 0.5);
  const auto run = [&](const std::vector<std::string>& arguments) {
    const Finished f = run_cudp(folder, arguments);
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.out;
  };
  const std::string judged = folder / "visits_2024.csv", model = folder / "runs/visits";
  const auto predicted =
      rows_of(run({"predict", model, "--dataset", judged, "--threshold", threshold, "--out", "-"}));
  const auto labelled = rows_of(newest);
  ASSERT_EQ(predicted.size(), labelled.size());
  std::map<std::string, double> count;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    EXPECT_EQ(predicted[i].at("id"), labelled[i].at("visit_id"));
    ++count[labelled[i].at("died") + " " + predicted[i].at("prediction")];
  }
  const double deaths = count["yes yes"] + count["yes no"];
  const double sensitivity = count["yes yes"] / deaths;
  const double specificity = count["no no"] / (count["no no"] + count["no yes"]);
  EXPECT_NEAR(deaths / 6'000.0, 0.035, 0.01);
  const auto said = nlohmann::json::parse(
      run({"eval", model, "--dataset", judged, "--threshold", threshold, "--json"}));
  EXPECT_DOUBLE_EQ(said["at_threshold"]["sensitivity"].get<double>(), sensitivity);
  EXPECT_DOUBLE_EQ(said["at_threshold"]["specificity"].get<double>(), specificity);
  EXPECT_NE(r.out.find(fmt::format("sensitivity {:.2f} %", 100.0 * sensitivity)), std::string::npos)
      << r.out;
  // Most deaths are seen coming, more than as many calls at random would give. Every run has other
  // noise: AUC was 0.75 to 0.84, sensitivity 0.69 to 0.90.
  EXPECT_GT(said["auc"].get<double>(), 0.6);
  EXPECT_GT(sensitivity, 0.5);
  EXPECT_GT(sensitivity + specificity, 1.05);

  const auto today = rows_of(content_of(folder / "predictions.csv"));
  ASSERT_EQ(today.size(), 40u);
  // Where a row is at the threshold rounding decides, since no seed fixes the model.
  const auto is_decided = [&](const std::map<std::string, std::string>& row) {
    return std::fabs(std::stod(row.at("p_yes")) / std::stod(threshold) - 1.0) > 1e-5;
  };
  for (const auto& row : today) {
    if (!is_decided(row)) continue;
    EXPECT_EQ(row.at("prediction"),
              std::stod(row.at("p_yes")) >= std::stod(threshold) ? "yes" : "no");
  }
  if (!python.empty()) {
    const auto other = rows_of(content_of(folder / "without_cudp.csv"));
    ASSERT_EQ(other.size(), today.size());
    for (std::size_t i = 0; i < today.size(); ++i) {
      EXPECT_EQ(other[i].at("id"), today[i].at("id"));
      if (is_decided(today[i])) {
        EXPECT_EQ(other[i].at("prediction"), today[i].at("prediction"));
      }
      EXPECT_NEAR(std::stod(other[i].at("p_yes")), std::stod(today[i].at("p_yes")), 1e-6);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "%zu blocks of commands, %.1f s: threshold %s, sensitivity %.3f, specificity %.3f, AUC "
      "%.3f\n",
      blocks.size(), took.count(), threshold.c_str(), sensitivity, specificity,
      said["auc"].get<double>());
  if (python.empty()) GTEST_SKIP() << "all but the last command: python3 with numpy is missing";
}

}  // namespace
}  // namespace cudp
