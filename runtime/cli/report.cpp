#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/run_certificate.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/report/comparison.hpp"
#include "runtime/report/pages.hpp"
#include "runtime/report/write.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kReportExamples = R"(Examples:
  cudp report runs/mnist
  cudp report runs/mnist --out pages
  cudp report runs/mnist runs/mnist-without-privacy --out pages
The pages of one run go to release/, and those with figures that were not paid for to private/.
Those of several runs, and of published folders that must stay as they are, go to --out.
)";

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  bool json = false;
};

std::vector<Option> report_options() {
  using namespace option_rows;
  return {positional(list("run", "RUN", &ReportFlags::runs, {},
                          "a run's folder or its release folder; several are compared")),
          text("out", "DIR", &ReportFlags::out, "folder for the pages; required for several runs"),
          json_option()};
}

/// A finished run that the user named by the path of its folder or of its release folder.
struct FoundRun {
  fs::path root;     ///< run folder; empty if there is only a release folder
  fs::path release;  ///< release folder; empty if the run has no privacy
};

FoundRun find_run(const std::string& place) {
  std::error_code none;
  const fs::path folder(place);
  if (fs::exists(folder / "release" / "NO-PRIVACY.txt", none) &&
      fs::exists(folder / "private" / "config.toml", none))
    return {.root = folder, .release = {}};
  FoundRun run;
  if (fs::is_regular_file(folder / "release" / "privacy.json", none))
    run = {.root = folder, .release = folder / "release"};
  else if (fs::is_regular_file(folder / "privacy.json", none))
    run = {.root = {}, .release = folder};
  else
    throw InputError(place + ": expected a run's folder or its release folder, found " +
                     found_for_run(place));
  if (read_run_certificate(run.release).stated.status == "not finished")
    throw InputError(place + ": expected a finished run, found one that is not; cudp account " +
                     place + " explains its plan");
  return run;
}

/// Returns the contents of a run's files for the report. The files of private/ are included if the
/// run's folder is known, not only its release/.
ReportFiles files_of(const FoundRun& run) {
  return run.root.empty() ? read_release_files(run.release) : read_run_files(run.root);
}

/// Returns the name of a run's folder, without the path to it.
std::string run_name(const FoundRun& run) {
  const fs::path folder =
      fs::weakly_canonical(run.root.empty() ? run.release : run.root).lexically_normal();
  const std::string name = folder.filename().string();
  return name == "release" ? folder.parent_path().filename().string() : name;
}

/// Returns the privacy that the runs spend together; nullopt if fewer than two have privacy, or if
/// it cannot be computed.
std::optional<SpentTogether> joint_spending(const std::vector<FoundRun>& runs) {
  std::vector<std::string> folders;
  for (const FoundRun& run : runs)
    if (!run.release.empty()) folders.push_back(run.release.string());
  if (folders.size() < 2) return std::nullopt;
  try {
    const Answer sum = several_runs(folders, std::nullopt, false);
    return SpentTogether{.delta = sum.json.at("delta").get<double>(),
                         .as_chosen = sum.json.at("as_chosen_on_the_way").get<double>(),
                         .fixed_ahead = sum.json.at("fixed_ahead").get<double>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

page::Document document_of(const std::vector<FoundRun>& runs) {
  if (runs.size() == 1) return privacy_report(files_of(runs.front()));
  std::vector<NamedFacts> facts;
  for (const FoundRun& run : runs) {
    std::string name = run_name(run);
    const auto same = [&](const NamedFacts& other) { return other.name == name; };
    for (int i = 2; std::ranges::any_of(facts, same); ++i)
      name = run_name(run) + " (" + std::to_string(i) + ")";
    facts.push_back({name, facts_of(files_of(run))});
  }
  return comparison(facts, joint_spending(runs));
}

/// Writes the report's pages into a folder that the user chose. Returns their paths.
std::vector<fs::path> write_to(const fs::path& folder, const page::Document& d) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InputError("--out " + folder.string() + ": " + failed.message());
  const unsigned mode = d.not_for_release.empty() ? 0644 : 0600;
  write_atomically(folder / kReportPage, page::to_html(d), mode);
  write_atomically(folder / kPrivacyText, page::to_text(d), mode);
  return {folder / kReportPage, folder / kPrivacyText};
}

int run_report(const ReportFlags& o) {
  if (o.runs.empty()) throw InputError("report: expected RUN, the folder of a run, found none");
  std::vector<FoundRun> runs;
  runs.reserve(o.runs.size());
  for (const std::string& place : o.runs) runs.push_back(find_run(place));
  if (runs.size() > 1 && o.out.empty())
    throw InputError("report: expected --out DIR with several runs, found none");
  std::vector<fs::path> written;
  bool for_release = true;
  if (!o.out.empty()) {
    const page::Document d = document_of(runs);
    for_release = d.not_for_release.empty();
    written = write_to(o.out, d);
  } else {
    const FoundRun& run = runs.front();
    if (!run.release.empty()) {
      const ReportFiles files = read_release_files(run.release);
      for_release = privacy_report(files).not_for_release.empty();
      written = write_release_pages(run.release, files);
    } else {
      for_release = false;
    }
    if (!run.root.empty())
      for (fs::path& page : write_private_page(run.root)) written.push_back(std::move(page));
  }
  Answer a{.json = {{"files", nlohmann::ordered_json::array()}, {"for_release", for_release}},
           .rows = {}};
  for (const fs::path& file : written) {
    a.json["files"].push_back(file.string());
    a.rows.emplace_back("page", file.string());
  }
  if (!for_release) a.rows.emplace_back("note", "not for release");
  print(a, o.json);
  return static_cast<int>(Exit::ok);
}

}  // namespace

void add_report_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "report",
               .description = "Make a run's report again, or compare runs",
               .examples = kReportExamples,
               .options = report_options(),
               .run = [](const TrainConfig& c) {
                 ReportFlags flags = c.of<ReportFlags>();
                 flags.json = c.json;
                 return run_report(flags);
               }});
}

}  // namespace cudp
