#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using SweepJson = nlohmann::ordered_json;

constexpr const char* kFile = "sweep.toml";
/// Returns the numbers K and N of the option --share "K/N"; 1 and 1 if the text is empty. Throws
/// InputError if it has another form.
std::pair<std::size_t, std::size_t> share_of(const std::string& text) {
  if (text.empty()) return {1, 1};
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto k = read_number<std::size_t>(text.substr(0, slash));
    const auto n = read_number<std::size_t>(text.substr(slash + 1));
    if (k && n && *k >= 1 && *k <= *n) return {*k, *n};
  }
  throw InputError("--share: expected K/N with K of 1 to N, found \"" + text + "\"");
}

/// A line of a file of Sweep::begun_file(), which lists runs that were started in a folder.
struct BegunRun {
  double epsilon = 0.0, delta = 0.0;
  bool starts = false;  ///< true: the run was about to make its folder, and had released nothing
};

/// End of a line of Sweep::begun_file() for a run that is just starting and does not yet have its
/// folder.
constexpr std::string_view kStarts = " starts";

/// Returns the runs in a file of Sweep::begun_file(); none if there is no such file. Throws
/// BudgetError if it is damaged.
std::vector<BegunRun> begun_runs(const fs::path& file) {
  std::error_code failed;
  const bool is_there = fs::exists(file, failed);
  if (failed) throw BudgetError(file.string() + ": " + failed.message());
  if (!is_there) return {};
  std::vector<BegunRun> runs;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    BegunRun run{.starts = line.ends_with(kStarts)};
    const std::string numbers =
        line.substr(0, line.size() - (run.starts ? kStarts.size() : std::size_t{0}));
    const std::size_t blank = numbers.find(' ');
    const auto epsilon = read_number<double>(numbers.substr(0, blank));
    const auto delta =
        blank == std::string::npos ? std::nullopt : read_number<double>(numbers.substr(blank + 1));
    if (!epsilon || !delta || !(*epsilon >= 0.0) || !(*delta >= 0.0))
      throw BudgetError(file.string() + ": expected epsilon and delta, found \"" + line +
                        "\"; what was spent is not known");
    run.epsilon = *epsilon;
    run.delta = *delta;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

Sweep::Sweep(SweepRequest request, Reporter& reporter)
    : request_(std::move(request)), reporter_(reporter) {
  const SweepFlags& flags = request_.flags;
  std::vector<std::string> notes;
  cells_ = cells_of(request_, notes);
  for (const std::string& note : notes) reporter_.info(note);
  const auto [mine, shares] = share_of(flags.share);
  for (std::size_t cell = 0; cell < cells_.size(); ++cell)
    for (std::int64_t repeat = 0; repeat < flags.repeats; ++repeat)
      runs_.push_back({.cell = cell, .mine = runs_.size() % shares == mine - 1});
  folder_ = flags.resume.empty() ? flags.out : flags.resume;
  if (folder_.empty()) {
    if (shares > 1)
      throw InputError("--share: expected --out DIR with it, the folder of all tasks, found none");
    return;
  }
  folder_ = fs::absolute(folder_).lexically_normal();
  if (!folder_.has_filename()) folder_ = folder_.parent_path();
  const fs::path stored = folder_ / "private" / kFile;
  std::error_code none;
  if (!fs::exists(stored, none)) {
    try {
      check_free(flags.out.empty() ? flags.resume : flags.out);
      return;
    } catch (const InputError&) {
      // Another process of the same sweep (--share) may have made the folder in between.
      if (!fs::exists(stored, none)) throw;
    }
  }
  if (read_file(stored) != sweep_text(request_))
    throw InputError("--out " + folder_.string() +
                     ": expected the settings of the sweep in it, which " + stored.string() +
                     " has, found others");
}

std::string Sweep::run_name(std::size_t run) const {
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(runs_.size()).size());
  return fmt::format("runs/{:0{}}", run + 1, digits);
}

RunFolder Sweep::run_folder(std::size_t run) const { return RunFolder(folder_ / run_name(run)); }

std::string Sweep::description(std::size_t run) const {
  const SweepCell& cell = cells_[runs_[run].cell];
  std::string text = varied_text(cell);
  if (request_.flags.repeats > 1)
    text += fmt::format("{}repeat {}", text.empty() ? "" : ", ",
                        run % static_cast<std::size_t>(request_.flags.repeats) + 1);
  return text.empty() ? "the only run" : text;
}

bool Sweep::is_over(std::size_t run) const {
  return !folder_.empty() && has_ended(run_folder(run));
}

std::size_t Sweep::runs_left() const {
  std::size_t n = 0;
  for (std::size_t r = 0; r < runs_.size(); ++r) n += runs_[r].mine && !is_over(r) ? 1 : 0;
  return n;
}

int Sweep::jobs() const {
  const auto left = static_cast<int>(std::min<std::size_t>(runs_left(), 1 << 20));
  std::vector<TrainConfig> configs;
  configs.reserve(cells_.size());
  for (const SweepCell& cell : cells_) configs.push_back(cell.config);
  return std::max(1, std::min(trainings_at_once(configs, request_.flags.jobs), left));
}

TrainConfig Sweep::config_of(std::size_t run) const {
  TrainConfig config = data_.with_shared_data(cells_[runs_[run].cell].config, true);
  config.out = run_folder(run).root().string();
  if (config.threads == 0) config.threads = std::max(1, available_cores() / at_once_);
  return config;
}

void Sweep::prepare() {
  std::vector<std::size_t> cells;
  std::vector<TrainConfig> configs;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const std::size_t cell = runs_[r].cell;
    if (is_over(r) || std::ranges::find(cells, cell) != cells.end()) continue;
    cells.push_back(cell);
    configs.push_back(cells_[cell].config);
    data_.load(configs.back(), reporter_);
  }
  const std::vector<PlannedSpending> plans = data_.plan(configs, reporter_);
  for (std::size_t i = 0; i < cells.size(); ++i) planned_[cells[i]] = plans[i];
}

std::vector<PlannedSpending> Sweep::spendings() const {
  std::vector<PlannedSpending> all;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const auto planned = planned_.find(runs_[r].cell);
    PlannedSpending s = planned == planned_.end() ? PlannedSpending{} : planned->second;
    std::error_code none;
    // If the run has a certificate, its epsilon and delta replace the planned ones.
    if (!folder_.empty() && fs::exists(run_folder(r).certificate(), none)) {
      s.certificate = read_file(run_folder(r).certificate());
      const SweepJson json = SweepJson::parse(s.certificate, nullptr, false);
      const auto number = [&](const char* key, double& to) {
        if (json.is_object() && json.contains(key) && json[key].is_number()) to = json[key];
      };
      number("epsilon", s.epsilon);
      number("delta", s.delta);
    } else if (!folder_.empty() && fs::exists(run_folder(r).no_privacy(), none)) {
      s.epsilon = std::numeric_limits<double>::infinity();
    }
    all.push_back(std::move(s));
    if (folder_.empty()) continue;
    std::vector<BegunRun> begun = begun_runs(begun_file(r));
    // Leaves out the last line if it is about the run that has the folder now, whose cost was added
    // above, or about a run that never had a folder and therefore released nothing.
    if (!begun.empty() && (begun.back().starts || fs::exists(run_folder(r).root(), none)))
      begun.pop_back();
    for (const BegunRun& b : begun)
      all.push_back({.epsilon = b.epsilon, .delta = b.delta, .certificate = ""});
  }
  return all;
}

fs::path Sweep::begun_file(std::size_t run) const {
  return folder_ / "private" / "begun" / fs::path(run_name(run)).filename();
}

void Sweep::note_begun(std::size_t run, RunEvent event) const {
  const PlannedSpending& planned = planned_.at(runs_[run].cell);
  if (!std::isfinite(planned.epsilon)) return;
  const fs::path file = begun_file(run);
  std::vector<BegunRun> begun = begun_runs(file);
  const bool is_open = !begun.empty() && begun.back().starts;
  if (event == RunEvent::resumes && !begun.empty() && !is_open) return;
  // If the run loses its random key, it may spend its whole budget, more than is planned.
  const double budget = cells_[runs_[run].cell].config.epsilon.value_or(0.0);
  const BegunRun now{.epsilon = std::fmax(planned.epsilon, budget),
                     .delta = planned.delta,
                     .starts = event == RunEvent::starts};
  if (is_open)
    begun.back() = now;
  else
    begun.push_back(now);
  std::string text;
  for (const BegunRun& b : begun) {
    text += number_text(b.epsilon) + " " + number_text(b.delta);
    if (b.starts) text += kStarts;
    text += '\n';
  }
  std::error_code failed;  // write_atomically() fails then, and throws
  fs::create_directory(file.parent_path(), failed);
  write_atomically(file, text, 0600);
}

void Sweep::make_folder() {
  const FilesInChange lock;
  if (!folder_.empty() && fs::exists(folder_ / "private" / kFile)) return;
  try {
    std::optional<NewRunFolder> made;
    if (folder_.empty())
      made.emplace(reserve_run_folder("sweep"));
    else
      made.emplace(folder_);
    write_atomically(made->folder().owner(kFile), sweep_text(request_), 0600);
    std::error_code failed;
    fs::create_directory(made->folder().root() / "runs", failed);
    if (failed)
      throw Error(made->folder().root().string() + ": cannot make the folder of the runs");
    folder_ = fs::absolute(made->publish().root());
  } catch (const Error&) {
    // Another process of the same sweep (--share) may have made the folder in between.
    const fs::path stored = folder_ / "private" / kFile;
    if (folder_.empty() || !fs::exists(stored) || read_file(stored) != sweep_text(request_)) throw;
  }
}

void Sweep::report(std::size_t run) const {
  const std::optional<RunResult> result = stored_result(run_folder(run));
  std::string line = fmt::format("run {} of {} (", run + 1, runs_.size());
  line += description(run) + "): ";
  if (!result) {
    reporter_.info(line + "refused; its noisy number of examples was paid for");
    return;
  }
  SweepTable one{.keys = {},
                 .cells = {{.settings = {}, .runs = {{"", "finished", result}}}},
                 .epsilon = {},
                 .delta = {}};
  const SweepTable released = released_part(one);
  const std::vector<SweptFigure> figures = figures_of(released);
  if (!figures.empty())
    line +=
        figures.front().name + " " +
        figures.front().text(*figure_of(*released.cells[0].runs[0].result, figures.front().key));
  else
    line += "finished";
  reporter_.info(line);
}

void Sweep::run(std::optional<EndOnSignal>& end) {
  make_folder();
  std::optional<FolderLock> lock;
  if (request_.flags.share.empty()) {
    lock.emplace(lock_of_runs(folder_ / "private", reporter_));
    const FolderLock tables = lock_of_tables();  // tasks of --share may be writing them
    for (const char* const part : {"release", "private", "private/begun"})
      remove_unfinished_files(folder_ / part);
  }
  std::vector<std::size_t> left;
  for (std::size_t r = 0; r < runs_.size(); ++r)
    if (runs_[r].mine && !is_over(r)) left.push_back(r);
  // Makes one run of each combination of settings first, then the repeats. The bounds of the
  // accountant, which the repeats need, too, are then known, and the table has results of all
  // combinations early.
  std::ranges::stable_sort(left, {}, [this](std::size_t r) {
    return r % static_cast<std::size_t>(request_.flags.repeats);
  });
  at_once_ = jobs();
  if (!left.empty())
    reporter_.info(fmt::format("{} of {} runs, {} at a time, in {}", left.size(), runs_.size(),
                               at_once_, folder_.string()));
  const EndOfTrainings ended =
      train_all(left, at_once_,
                {.train =
                     [this](std::size_t r, const QueuedSignals& signals) {
                       train_in_child(config_of(r), signals,
                                      [this, r](RunEvent event) { note_begun(r, event); });
                     },
                 .is_over = [this](std::size_t r) { return is_over(r); },
                 .report = [this](std::size_t r) { report(r); }},
                end);
  if (ended.code != Exit::ok)
    throw Error(run_name(ended.failed) + " (" + description(ended.failed) + "): " + ended.message,
                ended.code);
  if (ended.interrupted)
    throw Error(fmt::format("interrupted; {} of {} runs are left; continue with: cudp sweep "
                            "--resume {}",
                            runs_left(), left.size(), folder_.string()),
                Exit::again);
}

void Sweep::remove_leftovers_of_runs() const {
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const RunFolder folder = run_folder(r);
    std::error_code none;
    if (!runs_[r].mine || !fs::exists(folder.result(), none)) continue;
    try {
      const FolderLock lock(folder.checkpoints());
      remove_leftovers(folder);
    } catch (const Error&) {
      // Another process still has the run open, and removes these files itself.
    }
  }
}

FolderLock Sweep::lock_of_tables() const { return lock_of_runs(folder_ / "release", reporter_); }

SweepTable Sweep::table() const {
  SweepTable table;
  for (const auto& [key, value] : cells_.front().varied) table.keys.push_back(key);
  for (const SweepCell& cell : cells_) {
    SweptCell row;
    for (const auto& [key, value] : cell.varied) row.settings.push_back(value);
    table.cells.push_back(std::move(row));
  }
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    SweptRun run{
        .folder = run_name(r), .status = "missing", .result = stored_result(run_folder(r))};
    if (run.result)
      run.status = "finished";
    else if (certified_status(run_folder(r)) == "refused")
      run.status = "refused";
    table.cells[runs_[r].cell].runs.push_back(std::move(run));
  }
  return table;
}

bool Sweep::has_private_part(const SweepTable& table) {
  for (const SweptCell& cell : table.cells)
    for (const SweptRun& run : cell.runs)
      if (run.result && (!run.result->for_release || !std::isfinite(run.result->epsilon) ||
                         run.result->test_set == "private"))
        return true;
  return false;
}

void Sweep::write(const SweepTable& table) const {
  const auto write_part = [&](const SweepTable& part, const char* name, unsigned mode) {
    const fs::path to = folder_ / name;
    write_atomically(to / "sweep.csv", cells_csv(part), mode);
    write_atomically(to / "runs.csv", runs_csv(part), mode);
    write_atomically(to / "sweep.json", cudp::to_json(part).dump(2) + "\n", mode);
    return part.keys.empty() || figures_of(part).empty() ||
           draw_sweep(part, to / "sweep.png", mode);
  };
  bool drawn = write_part(released_part(table), "release", 0644);
  if (has_private_part(table)) drawn = write_part(table, "private", 0600) && drawn;
  if (!drawn) reporter_.warn("no picture of the sweep: gnuplot is missing or failed");
}

}  // namespace cudp
