#include "runtime/verify/released_settings.hpp"

#include <algorithm>
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

/// Returns whether the name of the data set is that of a table file.
bool names_table(const std::string& dataset) {
  static constexpr std::string_view kEndings[] = {".csv",    ".tsv",    ".csv.gz",
                                                  ".tsv.gz", ".csv.xz", ".tsv.xz"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return dataset.ends_with(ending); });
}

/// Returns the lines that are neither comments nor empty.
std::vector<std::string> set_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && !line.starts_with('#')) lines.push_back(line);
  return lines;
}

/// Returns the first difference between the lines of two files; "" if there is none.
std::string difference_of(const std::string& expected, const std::string& found) {
  const std::vector<std::string> one = set_lines(expected), other = set_lines(found);
  const auto [a, b] = std::ranges::mismatch(one, other);
  if (a == one.end() && b == other.end()) return "";
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
  if (is_named_dataset(dataset)) return {};
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
  s.is_checked = is_of_this_program(run);
  if (!s.is_checked) {
    s.found = "another build of the program made it";
    return s;
  }
  try {
    TrainConfig config;
    apply_settings(parse_settings(run.evidence.settings, RunFolder::kConfig), config);
    check_complete(config);
    const std::string difference =
        difference_of(write_config(config, Audience::release), run.evidence.settings);
    if (!difference.empty()) s.wrong.push_back(std::string(RunFolder::kConfig) + ": " + difference);
  } catch (const InputError& e) {
    s.wrong.emplace_back(e.what());
  }
  return s;
}

}  // namespace cudp
