#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/config/log_options.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/run/follow.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"

namespace cudp {
namespace {

constexpr const char* kTrainUsage =
    "cudp train --dataset NAME --epsilon E --delta D [flags]  trains privately\n";
constexpr const char* kTrainExamples = R"(Examples:
  cudp train --preset glyphs-cnn
  cudp train --dataset mnist --data-dir data --epsilon 3 --delta 1e-5
  cudp train --dataset patients.csv --schema patients.toml --epsilon 1 --delta 1e-6
  cudp train --resume runs/mine
cudp train --help-all lists all options and presets.
)";

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string privacy_text(const RunResult& r) {
  if (std::isinf(r.epsilon)) return "none: trained without privacy";
  return fmt::format("{} at delta {}", rounded_up(r.epsilon), short_rounded_up(r.delta));
}

/// Returns a text that compares the accuracy of a run without privacy with that of a private run.
std::string comparison_text(const RunResult& r) {
  const Comparison& with = *r.outcome.compared_with;
  const double points = 100.0 * (*r.test.accuracy() - with.test_accuracy);
  const std::string text =
      fmt::format("{:.2f} % at epsilon {}", 100.0 * with.test_accuracy, rounded_up(with.epsilon));
  if (with.dataset != r.dataset) return text + ", but on another data set: " + with.dataset;
  return text +
         fmt::format(", {:.2f} points {}", std::fabs(points), points < 0.0 ? "more" : "less");
}

std::string held_out_text(const ErrorBar& b) {
  return fmt::format(
      "{} {:.4g}, with noise; {:.4g} to {:.4g} in 95 of 100 runs (release/holdout.json; exact in "
      "private/metrics.jsonl)",
      b.name, b.value, b.low, b.high);
}

/// Returns the output at the end of a training, as a table or JSON. It leaves out accuracies on a
/// test set that is not public, because others may read stdout.
Answer answer_of(RunResult r) {
  if (r.test_set == "private") {
    r.test.values.clear();
    r.majority_class.reset();
  }
  Answer a{.json = to_json(r), .rows = {}};
  for (std::size_t i = 0; i < r.test.values.size(); ++i)
    if (const Metric& m = metrics(r.test.kind)[i]; m.in_result)
      a.rows.emplace_back(m.name, m.text(r.test.values[i]));
  if (r.majority_class)
    if (const auto line = no_better_than_majority(
            *r.test.accuracy(), r.test.of("majority_baseline").value_or(kNaN), *r.majority_class))
      a.rows.emplace_back("", *line);
  if (const auto r2 = r.test.of("r2"))
    if (const auto line = no_better_than_mean(*r2)) a.rows.emplace_back("", *line);
  if (r.outcome.compared_with && r.test.accuracy())
    a.rows.emplace_back("with privacy", comparison_text(r));
  a.rows.emplace_back("epsilon", privacy_text(r));
  if (r.training_epsilon && std::isfinite(r.epsilon))
    a.rows.emplace_back(
        "training alone",
        fmt::format("{} at delta {}, for rows that were not held out",
                    rounded_up(*r.training_epsilon), short_rounded_up(*r.training_delta)));
  if (r.outcome.sigma) a.rows.emplace_back("sigma", rounded_down(*r.outcome.sigma));
  a.rows.emplace_back("steps", std::to_string(r.outcome.steps));
  a.rows.emplace_back("time", fmt::format("{} ({:.0f} examples/s)", duration_text(r.seconds),
                                          r.examples_per_second));
  a.rows.emplace_back("run folder", r.run_dir);
  for (const std::string& reason : r.not_for_release)
    a.rows.emplace_back("NOT for release", reason);
  const char* const measured =
      r.test.kind == PredictionKind::target ? "test RMSE" : "test accuracy";
  if (r.training_epsilon) {
    if (r.held_out.empty())
      a.rows.emplace_back(measured,
                          "in private/metrics.jsonl; --holdout-epsilon releases noisy figures");
    else
      a.rows.emplace_back("held-out rows", held_out_text(r.held_out.front()));
  } else if (r.test_set == "private") {
    a.rows.emplace_back(measured,
                        "in private/metrics.jsonl (--test-data-is-public if the test rows are)");
  }
  if (r.test_set == "none")
    a.rows.emplace_back(measured,
                        "not measured: all rows were trained on; --test-data FILE "
                        "gives a test set, `cudp eval` scores a file");
  return a;
}

/// Reports how long the phases of the run took. Only the owner can see it if the number of examples
/// is private, because durations may reveal that number.
void show_timings(const Run& run) {
  run.reporter().show_timings(run.training->experiment().data.size_is_public);
}

int resume_training(const Settings& flags, const TrainConfig& asked, LogForm form,
                    ReleaseObserver* release_observer, Ranks& ranks) {
  Reporter reporter(asked.quiet, form);
  if (const auto result = finished_result(flags)) {
    reporter.info(asked.resume + " is complete; nothing to do");
    print(answer_of(*result), asked.json);
    return 0;
  }
  const std::unique_ptr<Run> run = resume_run(flags, reporter, release_observer, ranks);
  print(answer_of(train(*run)), asked.json);
  if (asked.timings) show_timings(*run);
  return 0;
}

int start_training(const Settings& flags, LogForm form, ReleaseObserver* release_observer,
                   Ranks& ranks) {
  std::vector<std::string> notes;
  const TrainConfig config = resolve_config(flags, notes);
  Reporter reporter(config.quiet, form);
  for (const std::string& note : notes) reporter.info(note);
  const std::unique_ptr<Run> run = start_run(config, reporter, release_observer, ranks);
  print(answer_of(train(*run)), config.json);
  if (config.timings) show_timings(*run);
  return 0;
}

/// Connects to the other ranks, started by --ranks or by an MPI launcher. Returns null if this
/// process trains alone.
std::unique_ptr<Ranks> ranks_of(const TrainConfig& asked) {
  const auto timeout = std::chrono::milliseconds(std::llround(1e3 * asked.rank_timeout));
  std::unique_ptr<Ranks> launched = mpi_ranks(timeout);
  if (asked.ranks == 1) return launched;
  if (launched != nullptr)
    throw InputError("--ranks: expected none where a launcher has started several processes");
  return fork_ranks(static_cast<int>(asked.ranks), timeout, follow_run);
}

/// Replaces the flag --resume-or-start by --resume, if the run exists already, or by --out. Throws
/// InputError if one of these flags is given too.
Settings as_resume_or_start(Settings flags) {
  const auto asked = flags.find("resume-or-start");
  if (asked == flags.end()) return flags;
  for (const char* other : {"resume", "out"})
    if (flags.contains(other))
      throw InputError(std::string("--resume-or-start: expected no --") + other +
                       " with it, found one");
  const Setting folder = asked->second;
  flags.erase(asked);
  std::error_code none;
  const bool there = std::filesystem::exists(std::get<std::string>(folder.value), none);
  flags.emplace(there ? "resume" : "out", folder);
  return flags;
}

/// Returns the form of log lines (text or JSON) that the flags set, or the config file that they
/// name.
LogForm log_form_of(const Settings& flags) {
  TrainConfig asked;
  apply_settings(flags, asked);
  if (!asked.config.empty() && !flags.contains("log-json"))
    if (const Settings file = read_settings(asked.config); file.contains("log-json"))
      apply_settings({*file.find("log-json")}, asked);
  return asked.of<LogOptions>().json ? LogForm::json : LogForm::text;
}

int run_training(const Settings& given, LogForm form, ReleaseObserver* release_observer) {
  std::optional<BlockedSignals> blocked(std::in_place);
  const Settings flags = as_resume_or_start(given);
  TrainConfig asked;
  apply_settings(flags, asked);
  std::optional<EndOnSignal> end;  // must outlive the ranks, but is set after them
  const std::unique_ptr<Ranks> several = ranks_of(asked);
  Ranks& ranks = several != nullptr ? *several : alone();
  set_interrupt_form(form == LogForm::json ? json_log_line : nullptr);
  if (ranks.leads())
    end.emplace("interrupted" + (asked.resume.empty()
                                     ? std::string(" before the first step; nothing was kept, and "
                                                   "the same command starts again")
                                     : "; " + resume_command(asked.resume)));
  else
    ignore_signals();
  blocked.reset();
  try {
    if (!ranks.leads()) return static_cast<int>(follow_run(ranks));
    if (!ranks.alone() && release_observer != nullptr)
      throw InputError("--ranks: expected 1 for a run that is observed");
    const int code = flags.contains("resume")
                         ? resume_training(flags, asked, form, release_observer, ranks)
                         : start_training(flags, form, release_observer, ranks);
    announce(ranks, {.kind = RankCommand::Kind::stop});
    ignore_signals();  // The run is complete, and its exit code says so.
    return code;
  } catch (const Error& e) {
    // After an interruption the other ranks are still waiting for a command, so they are sent the
    // command to stop. After any other error they are aborted.
    if (e.code() == Exit::again)
      announce(ranks, {.kind = RankCommand::Kind::stop});
    else
      ranks.abort(e.what(), e.code());
    throw;
  } catch (const std::exception& e) {
    ranks.abort(e.what(), Exit::failure);
    throw;
  }
}

/// Runs a training. If the log is JSON, an error is written as its last line.
int logged_training(const Settings& flags, ReleaseObserver* release_observer) {
  const LogForm form = log_form_of(flags);
  if (form == LogForm::text) return run_training(flags, form, release_observer);
  try {
    return run_training(flags, form, release_observer);
  } catch (const Error& e) {
    std::cerr << json_log_line("error", e.what()) << "\n";
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    std::cerr << json_log_line("error", e.what()) << "\n";
    return static_cast<int>(Exit::failure);
  }
}

}  // namespace

void add_train_command(CLI::App& app, CommandBody& body, ReleaseObserver* release_observer) {
  CLI::App* command = app.add_subcommand("train", "Train a model with differential privacy");
  std::string presets;
  for (const std::string& name : preset_names()) presets += (presets.empty() ? "" : ", ") + name;
  command->footer(kTrainExamples + ("Presets: " + presets));
  use_short_help(*command, kTrainUsage + help_lines_text(train_help_lines()) + kTrainExamples);
  const auto flags =
      std::make_shared<CommandFlags>(*command, train_options(), Repeated::last_counts);
  command->callback([&body, flags, release_observer] {
    body = {.run = [flags,
                    release_observer] { return logged_training(flags->given(), release_observer); },
            .check = [flags] { check_names(flags->values()); }};
  });
}

}  // namespace cudp
