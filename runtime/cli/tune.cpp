#include "runtime/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "privacy/verify/statements.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/setting_lists.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/tune/score.hpp"

namespace cudp {
namespace {

constexpr const char* kTuneUsage =
    "cudp tune --dataset NAME --epsilon E [flags]  chooses settings within the guarantee\n";
constexpr const char* kTuneExamples = R"(Examples:
  cudp tune --dataset patients.csv --schema patients.toml --epsilon 1
  cudp tune --preset mnist-cnn --data-dir data --epsilon 3 --lr 0.5,1,2 --clip 0.05,0.1
  cudp tune grid.toml --runs 10 --out runs/tuned --dry-run
cudp tune --help-all lists all settings.
)";
constexpr HelpLine kTuneLines[] = {
    {"", "Tuning"},
    {"runs", "expected number of trainings, which is secret"},
    {"eta", "form of that number's distribution"},
    {"most-runs", "public maximum of that number"},
    {"score", "rows that candidates are scored on: public or holdout"},
    {"dry-run", "print the plan; train and spend nothing"},
    {"expected-spread", "difference in accuracy that a dry run's advice is for"},
    {"jobs", "trainings at a time, 0: one a core"},
    {"out", "folder of the tuned run; the same command continues it"},
    {"resume", "continue the tuning in this folder"},
    {"resume-or-start", "continue it, or start it there"},
    {"", "Settings, as of cudp train; a list of values between commas is tuned"},
    {"preset", "tuned settings of a data set"},
    {"config", "settings of a file, such as a run's release/config.toml"},
    {"dataset", "a data set's name, a table or a folder"},
    {"schema", "schema of a table"},
    {"epsilon", "privacy budget of the whole tuning"},
    {"delta", "probability that the guarantee of the whole tuning fails"},
    {"holdout", "share of the rows to score candidates on"},
    {"lr", "learning rate"},
    {"clip", "clipping norm"},
    {"batch", "expected batch size"},
    {"epochs", "length of a training"},
    {"method", "training method"},
    {"model", "network"},
    {"json", "print the result as JSON"},
    {"quiet", "no progress, only warnings"},
};

/// Number of rows assumed by a dry run if their number is private (assumed_rows()).
constexpr double kAssumedRows = 10000.0;

using GivenTuning = GivenRequest<TuneRequest>;

/// Adds the settings of the user's file, or of the tuning that is continued, to the request. Throws
/// InputError if a file cannot be read or is not valid.
void add_tuning_files(TuneRequest& request, const CommandFlags& own) {
  const TuneFlags flags = request.flags;
  const Settings typed = own.given();
  if (!flags.resume_or_start.empty() && !(flags.resume.empty() && flags.out.empty()))
    throw InputError("--resume-or-start: expected no --resume or --out with it, found one");
  add_request_file({.of = "a tuning", .stored = "tune.toml", .with = {"resume", "jobs"}},
                   flags.file, flags.resume, !request.lists.empty(), typed,
                   [&](const std::string& text, const std::string& source) {
                     add_tune_file(text, source, typed, request);
                   });
}

std::string budget_text(double epsilon, double delta) {
  return fmt::format("{} at delta {}", rounded_up(epsilon), short_rounded_up(delta));
}

/// Returns the number of rows that a dry run assumes if their number is private: kAssumedRows, or
/// 16 batches if that is more.
double assumed_rows(const Tune& tune) {
  std::int64_t batch = 0;
  for (const SweepCell& cell : tune.candidates()) batch = std::max(batch, cell.config.batch);
  return std::fmax(kAssumedRows, 16.0 * static_cast<double>(batch));
}

/// Returns the noise multiplier that is planned for a candidate, as text.
std::string noise_text(const PlannedSpending& s) {
  if (s.certificate.empty()) return "sigma follows from the noisy number of examples";
  const std::vector<privacy::Release> releases =
      verify::read_stated_numbers(s.certificate).plan_releases();
  const double sigma = releases.size() == 1 ? verify::sigma_of(releases.front().mechanism) : 0.0;
  return sigma > 0.0 ? "sigma " + rounded_down(sigma) : "as its method needs";
}

/// Adds the standard error of a candidate's score to the output, and advice if that error is more
/// than half of `spread`, the difference in accuracy that is expected between candidates.
void add_score_error(const Tune& tune, double spread, Answer& a) {
  const auto rows = tune.public_test_rows();
  const auto add_spread = [&] {
    a.rows.emplace_back(
        "expected spread",
        fmt::format("{:.2g} % between candidates (--expected-spread)", 100.0 * spread));
  };
  a.json["expected_spread"] = spread;
  if (rows) {
    const double error = 0.5 / std::sqrt(static_cast<double>(std::max<std::size_t>(*rows, 1)));
    a.json["standard_error_of_a_score"] = error;
    a.rows.emplace_back("a score's error",
                        fmt::format("at most {:.2g} % on {} public rows", 100.0 * error, *rows));
    add_spread();
    if (error > 0.5 * spread)
      a.rows.emplace_back("advice", "fewer candidates: these rows tell few of them apart");
    return;
  }
  // The number of held-out rows is private. So the output states the number of rows from which on
  // the error is at most half of `spread`, and the errors for 300 and 3,000 rows.
  const TunePlan& plan = tune.plan();
  double sigma = 0.0;
  if (const std::string& text = tune.spendings().front().certificate; !text.empty())
    if (const auto held = verify::read_stated_numbers(text).holdout) sigma = held->sigma;
  if (sigma == 0.0)
    sigma = plan_holdout(0.5, plan.budget.epsilon, plan.budget.delta, false, 0.0, 1).sigma;
  // Standard error of the accuracy of two classes on n held-out rows. The accuracy is the sum of
  // two noisy cells of the confusion matrix, divided by the sum of all four. The noise adds an
  // error of at most sigma sqrt(2) / n, the random choice of the rows at most 1 / (2 sqrt(n)).
  const double noise = sigma * std::sqrt(2.0);
  const auto error_of = [&](double n) { return std::hypot(noise / n, 0.5 / std::sqrt(n)); };
  double enough = 1.0;
  while (error_of(enough) > 0.5 * spread) enough *= 1.01;
  a.json["noise_of_a_cell"] = sigma;
  a.json["held_out_rows_for_spread"] = std::ceil(enough);
  a.rows.emplace_back("a score's error",
                      fmt::format("{:.2g} % with 300 held-out rows, {:.2g} % with 3,000",
                                  100.0 * error_of(300.0), 100.0 * error_of(3000.0)));
  add_spread();
  a.rows.emplace_back(
      "advice",
      fmt::format("with fewer than {:.0f} held-out rows, give fewer candidates, or public "
                  "test rows",
                  enough));
}

/// Adds the expected work to the output: `trainings`, the mean number of trainings, times the mean
/// number of steps of a candidate.
void add_work(const Tune& tune, double trainings, Answer& a) {
  double steps = 0.0, rows = 0.0;
  for (const PlannedSpending& s : tune.spendings()) {
    if (s.certificate.empty()) return;
    const verify::StatedNumbers c = verify::read_stated_numbers(s.certificate);
    if (c.steps_planned == 0) return;
    steps += static_cast<double>(c.steps_planned);
    rows += static_cast<double>(c.steps_planned) * c.expected_batch;
  }
  const double share = trainings / static_cast<double>(tune.spendings().size());
  a.json["expected_steps"] = share * steps;
  a.json["expected_gradients"] = share * rows;
  a.rows.emplace_back("expected work", fmt::format("{:.3g} steps, {:.3g} gradients of rows",
                                                   share * steps, share * rows));
}

/// Returns a duration in words, with two digits.
std::string duration_text(double seconds) {
  if (seconds < 90.0) return fmt::format("{:.2g} s", seconds);
  if (seconds < 5400.0) return fmt::format("{:.2g} min", seconds / 60.0);
  return fmt::format("{:.2g} h", seconds / 3600.0);
}

/// Adds to the output an estimate of the time that the trainings will take.
void add_time(const Tune& tune, Answer& a) {
  const std::optional<double> seconds = tune.expected_seconds();
  if (seconds) a.json["expected_seconds"] = *seconds;
  a.rows.emplace_back("expected time", seconds ? "about " + duration_text(*seconds) +
                                                     ", estimated from a few steps on random rows"
                                               : "unknown for these candidates");
}

void print_plan(const Tune& tune, double spread, bool as_json) {
  const TunePlan& plan = tune.plan();
  const privacy::Stopping stopping(plan.law);
  Answer a;
  a.json = {{"epsilon", plan.budget.whole.epsilon},
            {"delta", plan.budget.whole.delta},
            {"unit", tune.unit()},
            {"candidate_epsilon", plan.budget.epsilon},
            {"candidate_delta", plan.budget.delta},
            {"expected_runs", stopping.mean()},
            {"most_runs", plan.law.cap},
            {"eta", plan.law.eta},
            {"gamma", plan.law.gamma},
            {"candidates", nlohmann::ordered_json::array()}};
  a.rows = {{"whole tuning", budget_text(plan.budget.whole.epsilon, plan.budget.whole.delta)},
            {"each training", budget_text(plan.budget.epsilon, plan.budget.delta)},
            {"trainings", fmt::format("{:.4g} expected, {} at most; the number stays secret",
                                      stopping.mean(), plan.law.cap)},
            {"candidates", std::to_string(tune.candidates().size())}};
  if (tune.has_count()) {
    const double rows = assumed_rows(tune);
    a.json["assumed_rows"] = rows;
    a.rows.emplace_back("row count",
                        fmt::format("private, released once; this plan is for {:.0f}", rows));
  }
  for (std::size_t i = 0; i < tune.candidates().size(); ++i) {
    const std::string settings = varied_text(tune.candidates()[i]);
    const PlannedSpending& s = tune.spendings()[i];
    a.json["candidates"].push_back(
        {{"settings", settings}, {"epsilon", s.epsilon}, {"delta", s.delta}});
    a.rows.emplace_back("", settings + ": " + noise_text(s));
  }
  add_work(tune, stopping.mean(), a);
  add_time(tune, a);
  add_score_error(tune, spread, a);
  a.rows.emplace_back("spent", "nothing: a dry run");
  print(a, as_json);
}

/// Returns a score with four digits, for the table; other texts unchanged.
std::string short_score(const std::string& score) {
  const std::optional<double> value = read_number<double>(score);
  return value ? fmt::format("{:.4g}", *value) : score;
}

void print_result(const Tune& tune, bool as_json) {
  const TuneResult result = tune.result();
  const RunResult& r = result.winner;
  const TunePlan& plan = tune.plan();
  Answer a;
  a.json = {{"epsilon", r.epsilon},
            {"delta", r.delta},
            {"candidate_epsilon", plan.budget.epsilon},
            {"candidate_delta", plan.budget.delta},
            {"settings", result.settings},
            {"score_name", result.score_name},
            {"score", result.score},
            {"run_dir", tune.folder().string()},
            {"for_release", r.for_release}};
  a.rows = {{"chosen", result.settings},
            {result.score_name, short_score(result.score)},
            {"epsilon", budget_text(r.epsilon, r.delta) + ", tuning included"},
            {"one training", budget_text(plan.budget.epsilon, plan.budget.delta) +
                                 ": what the chosen one alone would cost"}};
  for (const std::string& reason : r.not_for_release)
    a.rows.emplace_back("NOT for release", reason);
  a.rows.emplace_back("run folder", tune.folder().string());
  print(a, as_json);
}

int run_tune(GivenTuning given, const CommandFlags& own) {
  add_tuning_files(given.request, own);
  Reporter reporter(given.quiet);
  const TuneFlags flags = given.request.flags;
  std::optional<EndOnSignal> end(
      std::in_place, "interrupted before the first training; the same command starts or continues");
  Tune tune(std::move(given.request), reporter);
  if (!tune.is_finished()) {
    tune.prepare();
    if (flags.dry_run) {
      if (tune.has_count()) tune.plan_with_count(assumed_rows(tune));
      print_plan(tune, flags.expected_spread, given.json);
      return 0;
    }
    tune.run(end);
  } else {
    tune.open_finished();
    reporter.info(tune.folder().string() + " is complete; nothing to do");
  }
  print_result(tune, given.json);
  ignore_signals();  // The tuning is complete, and its exit code says so.
  return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("tune", "Choose settings by training, within the privacy guarantee");
  command->footer(kTuneExamples);
  add_lists_command(*command, body,
                    kTuneUsage + help_lines_text(kTuneLines, tune_options()) + kTuneExamples,
                    tune_options(), [](const CommandFlags& settings, const CommandFlags& own) {
                      return run_tune(request_on_command_line<TuneRequest>(settings, own), own);
                    });
}

}  // namespace cudp
