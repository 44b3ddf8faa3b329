#include "runtime/tune/request.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"
#include "runtime/settings/table_defaults.hpp"

namespace cudp {
namespace {

constexpr option_rows::Range kMeanRuns{.low = 1.0, .high = 1000.0, .text = "a number of 1 to 1000"};
constexpr option_rows::Range kEta{
    .low = -1.0, .high = 8.0, .text = "a number in (-1, 8]", .low_open = true};
constexpr option_rows::Range kMostRuns{
    .low = 0.0, .high = 131072.0, .text = "a whole number of 0 to 131072"};

/// Settings that must be the same for all candidates (combinations of settings), because the
/// guarantee of the whole tuning, or the data, depend on them.
constexpr std::string_view kCommon[] = {
    "epsilon", "delta", "accountant", "rng", "seed", "unsafe-diagnostics", "allow-weak-privacy",
    "preset",  "config"};

/// A setting that must not be given to a tuning, and the reason: the tuning sets it itself, or the
/// setting contradicts it.
struct Refused {
  std::string_view key, why;
};
constexpr Refused kRefused[] = {
    {"sigma", "the noise of each candidate follows from the budget of the whole tuning"},
    {"holdout-epsilon", "the noise of a score follows from the budget of the whole tuning"},
    {"holdout-delta", "the noise of a score follows from the budget of the whole tuning"},
    {"fresh-noise-allowed", "a training whose key is lost would have to be paid for again"},
    {"tensorboard", "the progress of a training that is not released would be shown"},
    {"unsafe-diagnostics", "the progress of a training that is not released would be shown"},
};

bool is_common(const Option& option) {
  return option.group == "Data" || option.group == "Text" || option.scope == Scope::machine ||
         std::ranges::find(kCommon, option.key) != std::end(kCommon);
}

void check_lists(const SettingLists& lists) {
  for (const auto& [key, values] : lists) {
    for (const Refused& refused : kRefused)
      if (key == refused.key)
        throw InputError(fmt::format("{}: expected none, since {}, found {}", values.front().place,
                                     refused.why, value_text(values.front().value)));
    if (values.size() > 1 && is_common(*swept_option(key)))
      throw InputError(
          fmt::format("{}: expected one value, which all candidates share, found {} of them",
                      values.front().place, values.size()));
  }
}

/// Throws InputError if a candidate has a setting that a tuning does not allow, or if candidates
/// differ in a setting that must be the same for all. Covers all sources of settings: flags, the
/// file of --config, a method's table in it, and presets.
void check_resolved(const SettingLists& lists, const std::vector<SweepCell>& cells) {
  const TrainConfig usual;
  const TrainConfig& first = cells.front().config;
  for (const SweepCell& cell : cells) {
    for (const Refused& refused : kRefused)
      if (const auto value = find_option(refused.key)->get(cell.config);
          value != find_option(refused.key)->get(usual))
        throw InputError(fmt::format(
            "{}: expected none in the file of --config or in a preset, since {}, found {}",
            refused.key, refused.why, value_text(*value)));
    if (cell.config.seed && !lists.contains("seed"))
      throw InputError(
          fmt::format("seed: expected as --seed of the tuning, found {} in the file of --config",
                      *cell.config.seed));
    for (const Option& option : train_options()) {
      // Candidates may have different presets: one that is chosen automatically for the data may
      // depend on the method.
      if (!is_common(option) || option.key == "preset" || option.key == "config") continue;
      const auto value = option.get(cell.config), expected = option.get(first);
      if (value != expected)
        throw InputError(fmt::format(
            "{}: expected one value, which all candidates share, found {} and {} in a file or a "
            "preset",
            option.key, expected ? value_text(*expected) : "none",
            value ? value_text(*value) : "none"));
    }
  }
}

/// Returns a number, rounded to two significant digits.
double rounded(double x) { return std::strtod(fmt::format("{:.1e}", x).c_str(), nullptr); }

std::vector<Setting> multiples(double x, std::initializer_list<double> factors) {
  std::vector<Setting> values;
  for (const double factor : factors)
    values.push_back({Value(rounded(factor * x)), "the default grid"});
  return values;
}

ScoreRows rows_of_score(const TuneRequest& request, const TrainConfig& base) {
  const bool is_public = is_named_dataset(base.dataset) || base.test_data_is_public;
  std::string score = request.flags.score;
  if (score.empty())
    score = base.holdout || !(is_public || !base.test_data.empty()) ? "holdout" : "public";
  if (score == "holdout") return ScoreRows::held_out;
  if (!is_public)
    throw InputError(
        "--score: expected public test rows (--test-data-is-public, if the rows of --test-data "
        "are), or holdout, which holds rows of the table out and scores on them with noise, found "
        "public");
  if (base.holdout)
    throw InputError("--holdout: expected none with --score public, found " +
                     privacy::number(*base.holdout));
  return ScoreRows::public_rows;
}

}  // namespace

const std::vector<Option>& tune_options() {
  using namespace option_rows;
  static const std::vector<Option> all = {
      optional_positional(text("file", "GRID.toml", &TuneFlags::file,
                               "File with settings, lists of them, and the keys of these flags")),
      number("runs", "N", &TuneFlags::runs, kMeanRuns,
             "Expected number of trainings; the number itself is drawn and stays secret"),
      number("eta", "ETA", &TuneFlags::eta, kEta,
             "Form of the distribution of the number of trainings: 0 logarithmic, 1 geometric; "
             "the smaller, the cheaper, and the more the number varies"),
      integer("most-runs", "M", &TuneFlags::most_runs, kMostRuns,
              "Public maximum of the number of trainings, 0: one that is hardly ever reached"),
      one_of(text("score", "ROWS", &TuneFlags::score,
                  "Rows that candidates are scored on: public test rows, or private ones that "
                  "are held out; public if there are public test rows"),
             {"public", "holdout"}),
      integer("jobs", "N", &TuneFlags::jobs, kThreads,
              "Trainings at a time, 0: one a core, or 8 on a CUDA device"),
      toggle("dry-run", &TuneFlags::dry_run,
             "Print what each candidate may spend and how well scores tell candidates apart; "
             "train and spend nothing"),
      number("expected-spread", "D", &TuneFlags::expected_spread, kInsideUnit,
             "With --dry-run: difference in accuracy between candidates that scores should tell "
             "apart"),
      text("out", "DIR", &TuneFlags::out,
           "Folder of the tuned run; the same command continues it. runs/tune-TIME if not given"),
      text("resume", "DIR", &TuneFlags::resume, "Continue the tuning in DIR"),
      text("resume-or-start", "DIR", &TuneFlags::resume_or_start,
           "Continue the tuning in DIR, or start it there if there is none"),
  };
  return all;
}

void add_tune_file(std::string_view toml, const std::string& source, const Settings& given,
                   TuneRequest& request) {
  add_lists_file(
      toml, source,
      {.name = "tune",
       .options = tune_options(),
       .only_flags = {"file", "out", "resume", "resume-or-start", "dry-run", "expected-spread"}},
      given, request);
}

std::string tune_text(const TuneRequest& request) {
  const TuneFlags& f = request.flags;
  std::string text = fmt::format("runs = {}\neta = {}\nmost-runs = {}\n", privacy::number(f.runs),
                                 privacy::number(f.eta), f.most_runs);
  if (!f.score.empty()) text += fmt::format("score = \"{}\"\n", f.score);
  return text + lists_text(request.lists);
}

bool has_grid(const SettingLists& lists) {
  return std::ranges::any_of(lists, [](const auto& l) { return l.second.size() > 1; });
}

TuneSettings tune_settings(const TuneRequest& request) {
  check_lists(request.lists);
  TuneSettings s{.lists = request.lists};
  const bool has_source = s.lists.contains("preset") || s.lists.contains("config");
  if (!s.lists.contains("delta") && !has_source) {
    s.lists["delta"] = {{Value(kTuneDelta), "the default of cudp tune"}};
    s.notes.push_back(fmt::format("delta {} of the whole tuning, since none is given (--delta)",
                                  privacy::number(kTuneDelta)));
  }
  std::vector<SweepCell> cells = combinations_of(s.lists);
  std::vector<std::string> ignored;
  resolve_cells(cells, ignored);
  const TrainConfig& base = cells.front().config;
  if (base.sigma)
    throw InputError(
        "--epsilon: expected the budget of the whole tuning, found a noise multiplier "
        "(sigma) in a file or preset");
  if (!base.epsilon || !base.delta)
    throw InputError("--epsilon: expected the budget of the whole tuning, found none");
  check_resolved(s.lists, cells);
  s.epsilon = *base.epsilon;
  s.delta = *base.delta;
  s.score = rows_of_score(request, base);
  if (s.score == ScoreRows::held_out && !base.holdout) {
    s.lists["holdout"] = {{Value(kTuneHoldout), "the default of cudp tune"}};
    s.notes.push_back(
        fmt::format("a share of {} of the rows is held out to score candidates on "
                    "(--holdout)",
                    privacy::number(kTuneHoldout)));
  }
  return s;
}

std::vector<SweepCell> candidates_of(const TuneSettings& settings, double epsilon, double delta,
                                     std::vector<std::string>& notes) {
  SettingLists lists = settings.lists;
  const auto set = [&](const char* key, double value) {
    lists[key] = {{Value(value), "the budget of a candidate"}};
  };
  set("epsilon", epsilon);
  set("delta", delta);
  if (settings.score == ScoreRows::held_out) {
    set("holdout-epsilon", epsilon);
    set("holdout-delta", delta);
  }
  std::vector<SweepCell> cells = combinations_of(lists);
  resolve_cells(cells, notes);
  for (const SweepCell& cell : cells)
    if (!method_entry(cell.config.method).gives_privacy)
      throw InputError("--method: expected methods with privacy, found " + cell.config.method);
  return cells;
}

void add_default_grid(const TrainConfig& base, bool is_table, TuneSettings& settings) {
  const MethodEntry& method = method_entry(base.method);
  const bool has_clip = takes(method, "clip");
  const auto& open = base.of<LeftOpen>().keys;
  if (!method.stochastic || !takes(method, "lr"))
    throw InputError("--method " + base.method +
                     ": expected a list of values of a setting (--clip 0.1,1), since there is no "
                     "default grid for this method, found none");
  // If the learning rate of a linear model of a table is left open, choose_for_table() computes it
  // for each clipping norm. So the grid varies the clipping norm and the schedule, not the learning
  // rate.
  if (is_table && std::ranges::find(open, "lr") != open.end() && has_clip) {
    settings.lists["clip"] = multiples(0.5, {0.2, 1.0, 4.0});
    if (!settings.lists.contains("schedule"))
      settings.lists["schedule"] = {{Value(std::string("constant")), "the default grid"},
                                    {Value(std::string("cosine")), "the default grid"}};
  } else {
    settings.lists["lr"] = multiples(base.lr, {0.5, 1.0, 2.0});
    if (has_clip) settings.lists["clip"] = multiples(base.clip_norm, {0.5, 1.0, 2.0});
  }
  std::string text = lists_text([&] {
    SettingLists shown;
    for (const auto& [key, values] : settings.lists)
      if (values.size() > 1) shown[key] = values;
    return shown;
  }());
  text.pop_back();  // the last line's end
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.replace(at, 1, ", ");
  settings.notes.push_back("the default grid: " + text);
}

}  // namespace cudp
