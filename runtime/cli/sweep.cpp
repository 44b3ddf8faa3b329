#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/run_certificate.hpp"
#include "runtime/cli/setting_lists.hpp"
#include "runtime/cli/short_help.hpp"

namespace cudp {
namespace {

constexpr const char* kSweepUsage =
    "cudp sweep SETTINGS OF TRAININGS [flags]  trains with all combinations of lists of settings\n";
constexpr const char* kSweepExamples = R"(Examples:
  cudp sweep --preset adult-logistic --data-dir data --epsilon 0.5,1,3 --repeats 3
  cudp sweep sweep.toml --out sweeps/first --total-epsilon 8
  cudp sweep --resume sweeps/first
cudp sweep --help-all lists all settings.
)";
constexpr HelpLine kSweepLines[] = {
    {"", "Sweep"},
    {"repeats", "runs of each combination, each with a key of its own"},
    {"jobs", "runs at a time, 0: one a core"},
    {"total-epsilon", "refuse the sweep if all runs together may spend more"},
    {"total-delta", "delta of all runs together"},
    {"out", "folder of the sweep; the same command continues it"},
    {"resume", "continue the sweep in this folder"},
    {"share", "every N-th run only, from the K-th on: a task of an array"},
    {"", "Settings, as of cudp train; a list has values between commas"},
    {"preset", "tuned settings of a data set"},
    {"config", "settings of a file, such as a run's release/config.toml"},
    {"dataset", "a data set's name, a table or a folder"},
    {"epsilon", "privacy budget of each run"},
    {"delta", "probability that a run's guarantee fails"},
    {"lr", "learning rate"},
    {"batch", "expected batch size"},
    {"epochs", "length of a training"},
    {"method", "training method"},
    {"model", "network"},
    {"json", "print the table as JSON"},
    {"quiet", "no progress, only warnings"},
};

using GivenSweep = GivenRequest<SweepRequest>;

/// Adds the settings of the user's file, or of the sweep that is continued, to the request. Throws
/// InputError if a file cannot be read or is not valid.
void add_files(SweepRequest& request, const CommandFlags& own) {
  const Settings typed = own.given();
  const SweepFlags flags = request.flags;
  add_request_file({.of = "a sweep",
                    .stored = "sweep.toml",
                    .with = {"resume", "jobs", "share", "total-epsilon", "total-delta"}},
                   flags.file, flags.resume, !request.lists.empty(), typed,
                   [&](const std::string& text, const std::string& source) {
                     add_sweep_file(text, source, typed, request);
                   });
}

/// Privacy cost of all runs of a sweep together (nullopt if there is no bound), and a message about
/// it.
struct Total {
  std::optional<JointSpending> spent;
  std::string text;
};

Total total_of(const Sweep& sweep, const SweepFlags& flags) {
  std::vector<SpendingRun> runs;
  std::size_t without = 0;
  for (const PlannedSpending& s : sweep.spendings()) {
    if (std::isfinite(s.epsilon))
      runs.push_back({.certificate = s.certificate, .epsilon = s.epsilon, .delta = s.delta});
    else
      ++without;
  }
  Total total;
  const std::string note =
      without == 0 ? ""
                   : fmt::format("{} run{} without privacy, of which nothing may be released",
                                 without, without == 1 ? "" : "s");
  if (runs.empty()) return {.spent = std::nullopt, .text = note};
  total.spent = joint_spending(runs, flags.total_delta);
  total.text =
      fmt::format("{} at delta {}, as chosen on the way{}", rounded_up(total.spent->epsilon),
                  privacy::number(total.spent->delta), note.empty() ? "" : "; " + note);
  return total;
}

void check_total(const Total& total, const Sweep& sweep, const SweepFlags& flags) {
  if (!flags.total_epsilon || !total.spent || total.spent->epsilon <= *flags.total_epsilon) return;
  throw BudgetError(fmt::format(
      "--total-epsilon {}: the {} runs together may spend epsilon {} at delta {}; lower --epsilon, "
      "or make fewer runs",
      privacy::number(*flags.total_epsilon), sweep.size(), rounded_up(total.spent->epsilon),
      privacy::number(total.spent->delta)));
}

/// Ends a sweep: removes files that complete runs do not need any more, writes the tables of
/// results, and prints the part that may be published.
void finish(const Sweep& sweep, const SweepFlags& flags, bool as_json) {
  sweep.remove_leftovers_of_runs();
  const FolderLock lock = sweep.lock_of_tables();
  SweepTable table = sweep.table();
  const Total total = total_of(sweep, flags);
  if (total.spent) {
    table.epsilon = total.spent->epsilon;
    table.delta = total.spent->delta;
  }
  sweep.write(table);
  const SweepTable released = released_part(table);
  Answer a{.json = to_json(released), .rows = rows_of(released)};
  a.json["folder"] = sweep.folder().string();
  if (!total.text.empty()) a.rows.emplace_back("all runs together: epsilon", total.text);
  if (Sweep::has_private_part(table))
    a.rows.emplace_back("exact figures", "in private/sweep.csv, not for release");
  a.rows.emplace_back("sweep folder", sweep.folder().string());
  print(a, as_json);
}

int run_sweep(GivenSweep given, const CommandFlags& own) {
  add_files(given.request, own);
  Reporter reporter(given.quiet);
  const SweepFlags flags = given.request.flags;
  std::optional<EndOnSignal> end(
      std::in_place, "interrupted before the first run; the same command starts or continues");
  Sweep sweep(std::move(given.request), reporter);
  if (sweep.runs_left() > 0) {
    sweep.prepare();
    const Total total = total_of(sweep, flags);
    check_total(total, sweep, flags);
    if (!total.text.empty()) reporter.info("all runs together: epsilon " + total.text);
    try {
      sweep.run(end);
    } catch (const Error& e) {
      // Writes the table of the runs that are finished, if there is a folder.
      std::error_code none;
      if (std::filesystem::is_directory(sweep.folder() / "release", none)) {
        const FolderLock lock = sweep.lock_of_tables();
        sweep.write(sweep.table());
      }
      ignore_signals();  // The exit code is decided.
      throw;
    }
  }
  set_interrupt_line("interrupted while the table was written; the same command writes it");
  finish(sweep, flags, given.json);
  ignore_signals();  // The sweep is complete, and its exit code says so.
  return 0;
}

}  // namespace

void add_sweep_command(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("sweep", "Train with all combinations of lists of settings");
  command->footer(kSweepExamples);
  add_lists_command(*command, body,
                    kSweepUsage + help_lines_text(kSweepLines, sweep_options()) + kSweepExamples,
                    sweep_options(), [](const CommandFlags& settings, const CommandFlags& own) {
                      return run_sweep(request_on_command_line<SweepRequest>(settings, own), own);
                    });
}

}  // namespace cudp
