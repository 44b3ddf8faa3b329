#include "runtime/verify/released_settings.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "privacy/text/json_text.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/settings/settings.hpp"

namespace cudp {
namespace {

/// Returns whether the certificate states that the same version and commit of this program made the
/// run.
bool is_of_this_program(const ReleasedRun& run) {
  const auto json = privacy::parse_json(run.evidence.certificate);
  const nlohmann::json& stated = json.at("build");
  const BuildInfo mine = build_info();
  return stated.value("version", "") == mine.version && stated.value("commit", "") == mine.commit;
}

/// Compares what the certificate and the settings state about the data with what is published about
/// the data set of this name. Returns one line for each difference.
std::vector<std::string> published_differences(const std::string& dataset,
                                               const nlohmann::json& certificate,
                                               const verify::StatedNumbers& c,
                                               const verify::Settings& settings) {
  std::vector<std::string> wrong;
  if (const auto& stated = certificate.at("dataset"); stated != nlohmann::json(dataset))
    wrong.push_back("dataset: expected " + dataset + " as the settings name, found " +
                    stated.dump());
  const std::uint64_t rows = published_rows(dataset);
  if (!c.examples || *c.examples != rows)
    wrong.push_back("training_examples: expected " + std::to_string(rows) + ", as published of " +
                    dataset + ", found " +
                    (c.examples ? std::to_string(*c.examples) : std::string("none")));
  for (const char* const key : {"schema", "test-data"})
    if (settings.has(key))
      wrong.push_back(std::string(key) + ": expected none with " + dataset +
                      ", whose schema and test rows are published, found " + settings.text(key));
  return wrong;
}

/// Returns whether the name of the data set is the name of a table file.
bool names_table(const std::string& dataset) {
  static constexpr std::string_view kEndings[] = {".csv",    ".tsv",    ".csv.gz",
                                                  ".tsv.gz", ".csv.xz", ".tsv.xz"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return dataset.ends_with(ending); });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Checks a settings file that another build of the program wrote. found: text of the file.
/// written: text that this program writes for the same settings. Returns an error message for the
/// first line of `found` that is not in `written`; "" if there is none. Lines may be missing in
/// `found`, because settings differ between versions, but none may occur more often than in
/// `written`.
std::string unknown_line(const std::string& written, const std::string& found) {
  std::vector<std::string> known = lines_of(written);
  for (const std::string& line : lines_of(found)) {
    if (line.empty()) continue;
    const auto at = std::ranges::find(known, line);
    if (at == known.end())
      return "expected settings as the program writes them, found '" + line + "'";
    known.erase(at);
  }
  return "";
}

/// Returns an error message for the first difference between the lines of two files; "" if there is
/// none.
std::string difference_of(const std::string& expected, const std::string& found) {
  if (expected == found) return "";
  const std::vector<std::string> one = lines_of(expected), other = lines_of(found);
  const auto [a, b] = std::ranges::mismatch(one, other);
  if (a == one.end() && b == other.end()) return "expected the same line ends, found others";
  return "expected " + (a != one.end() ? "'" + *a + "'" : "no more lines") + ", found " +
         (b != other.end() ? "'" + *b + "'" : "no more lines");
}

}  // namespace

std::vector<std::string> data_differences(const ReleasedRun& run) {
  const verify::Settings settings(run.evidence.settings);
  const verify::StatedNumbers c = verify::read_stated_numbers(run.evidence.certificate);
  const auto json = privacy::parse_json(run.evidence.certificate);
  const std::string dataset = settings.has("dataset") ? settings.text("dataset") : "";
  // Named data sets are published, so the meaning and the number of their rows are known.
  if (is_named_dataset(dataset)) return published_differences(dataset, json, c, settings);
  std::vector<std::string> wrong;
  if (c.examples && !settings.is_on("size-is-public"))
    wrong.emplace_back("size-is-public: expected it as the certificate has no noisy row count");
  if (!names_table(dataset)) return wrong;
  // A run that ended before training has no model, whose schema would state the meaning of a row.
  if (c.status == "refused" && json.value("assumptions", nlohmann::json::array()).empty())
    wrong.emplace_back("assumptions: expected what a row of the table is, found nothing of it");
  const bool has_test = settings.has("test-data") && !settings.text("test-data").empty();
  if (!has_test && !c.holdout && !settings.has("holdout") && c.test_set != "none")
    wrong.push_back("test_set: expected none, as the settings name no test rows, found '" +
                    c.test_set + "'");
  return wrong;
}

verify::Statement check_settings_file(const ReleasedRun& run) {
  verify::Statement s{
      .name = "settings file", .found = "as the program reads and writes it", .wrong = {}};
  const bool is_ours = is_of_this_program(run);
  if (!is_ours)
    s.found = "another build of the program made it; each line is one that this program writes";
  try {
    TrainConfig config;
    apply_settings(parse_settings(run.evidence.settings, RunFolder::kConfig), config);
    if (is_ours) check_complete(config);
    const std::string written = write_config(config, Audience::release);
    const std::string difference = is_ours ? difference_of(written, run.evidence.settings)
                                           : unknown_line(written, run.evidence.settings);
    if (!difference.empty()) s.wrong.push_back(std::string(RunFolder::kConfig) + ": " + difference);
  } catch (const InputError& e) {
    s.wrong.emplace_back(e.what());
  }
  return s;
}

}  // namespace cudp
