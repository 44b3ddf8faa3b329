#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/scoring.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kEvalExamples = R"(Examples:
  cudp eval runs/short --dataset glyphs
  cudp eval runs/mnist/release --dataset mnist --data-dir data --json
  cudp eval runs/mine --dataset new_patients.csv --group-by sex --out pictures
  cudp eval runs/mine --dataset new_patients.csv --at-recall 0.8
  cudp eval runs/mine --dataset newer_patients.csv --threshold 0.05
  cudp eval runs/reviews --dataset imdb --data-dir data
)";

/// Maximum number of groups into which --group-by divides the rows, i.e. of distinct texts in that
/// column.
constexpr std::size_t kMaxGroups = 1000;

struct EvalFlags {
  std::string run_dir;
  std::string group_by;
  std::string out;
  std::optional<double> threshold;
  std::optional<double> at_precision;
  std::optional<double> at_recall;
};

std::vector<Option> eval_options() {
  using namespace option_rows;
  std::vector<Option> options = {
      positional(text("run_dir", "TEXT", &EvalFlags::run_dir,
                      "run folder, its release folder, or a .safetensors file")),
      text("group-by", "COLUMN", &EvalFlags::group_by,
           "evaluate the rows of each text of this column of the table, too"),
      text("out", "DIR", &EvalFlags::out,
           "put evaluation.json and pictures (ROC, precision and recall, reliability, confusion) "
           "into this folder"),
      option_rows::number(
          "threshold", "T", &EvalFlags::threshold, kUnit,
          "of two classes: predict the second where its probability is at least this, as "
          "`predict` does; the more probable one, if not given"),
      option_rows::number(
          "at-precision", "P", &EvalFlags::at_precision, kUnit,
          "for two classes: the threshold of the highest sensitivity whose PPV on these rows is at "
          "least this"),
      option_rows::number(
          "at-recall", "R", &EvalFlags::at_recall, kUnit,
          "for two classes: the largest threshold whose sensitivity on these rows is at least "
          "this"),
      shared_option("test-data",
                    "score this table; --dataset is then the training table, for "
                    "--accept-private-bounds"),
      shared_option("test-labels", ".npy file with the labels of --test-data"),
      shared_option("test-arrays", "names of the arrays of --test-data, if that is a .npz file"),
      shared_option(
          "accept-private-bounds",
          "for models of earlier versions, which do not know their bounds: read them from "
          "the training data again"),
      json_option(),
  };
  std::vector<Option> shared = scoring_options();
  options.insert(options.begin() + 1, std::make_move_iterator(shared.begin()),
                 std::make_move_iterator(shared.end()));
  return options;
}

/// Computes the metrics of all rows and of each group of rows: an Evaluator (accuracy etc. from
/// predictions) for all rows, and one for each text in the column of --group-by.
struct Evaluators {
  Evaluator all;
  std::map<std::string, Evaluator, std::less<>> groups;
};

Evaluators evaluators_of(Scorer& scorer, const ReleasedModel& model, const std::string& group_by,
                         std::optional<double> threshold) {
  const Evaluator empty(model.network.spec.loss, model.network.outputs,
                        model.inputs.target().value_or(TargetBounds{}), threshold);
  Evaluators e{empty, {}};
  ScoredBlock block;
  while (scorer.next(block)) {
    e.all.add(block.predictions);
    if (group_by.empty()) continue;
    for (std::size_t row = 0; row < block.groups.size(); ++row) {
      const std::string_view text = block.groups[row];
      auto at = e.groups.find(text);
      if (at == e.groups.end()) {
        if (e.groups.size() == kMaxGroups)
          throw InputError(
              fmt::format("--group-by: expected a column of at most {} different "
                          "texts, found more in {}",
                          kMaxGroups, group_by));
        at = e.groups.emplace(text, empty).first;
      }
      at->second.add(block.predictions, row);
    }
  }
  return e;
}

void add_groups(Answer& a, const Evaluators& e, const std::string& group_by,
                const std::vector<std::string>& classes) {
  for (const auto& [text, evaluator] : e.groups) {
    const Evaluation of = evaluator.evaluation();
    nlohmann::ordered_json j = {{"group", text}};
    j.update(to_json(of, classes));
    a.json["groups"].push_back(std::move(j));
    std::string line;
    for (const Metric& m : metrics(prediction_kind(of)))
      line += std::string(line.empty() ? "" : ", ") + m.name + " " + m.text(m.value(of));
    a.rows.emplace_back(fmt::format("{} = {}", group_by, shown(text)),
                        fmt::format("{} rows: {}", of.examples, line));
    if (of.at_threshold) a.rows.emplace_back("", text_of(*of.at_threshold));
  }
}

/// Adds the metrics at the thresholds that the flags request, and the table of thresholds, to the
/// output.
void add_thresholds(Answer& a, const Evaluator& evaluator, const Evaluation& e,
                    const EvalFlags& flags, const std::vector<std::string>& classes) {
  const auto add = [&](const char* key, const char* what, double min_share,
                       const std::optional<ThresholdCounts>& at) {
    a.json[key] = nullptr;
    if (at) a.json[key] = to_json(*at);
    a.rows.emplace_back(fmt::format("{} at least {}", what, percent_text(min_share)),
                        at ? "threshold " + threshold_text(at->threshold) + ": " + text_of(*at)
                           : "by no threshold");
  };
  if (flags.at_precision)
    add("at_precision", "PPV", *flags.at_precision, evaluator.at_precision(*flags.at_precision));
  if (flags.at_recall)
    add("at_recall", "sensitivity", *flags.at_recall, evaluator.at_recall(*flags.at_recall));
  for (auto& row : threshold_table(e, classes)) a.rows.push_back(std::move(row));
}

/// Throws InputError if a flag sets or requests a threshold, but the model does not give
/// probabilities of two classes.
void check_thresholds(const EvalFlags& flags, const Network& network) {
  for (const auto& [flag, value] :
       {std::pair("--threshold", flags.threshold), std::pair("--at-precision", flags.at_precision),
        std::pair("--at-recall", flags.at_recall)})
    if (value) check_threshold(flag, network.spec.loss, network.outputs);
}

/// Writes the evaluation and its pictures into `folder`, readable by the owner only, because the
/// rows may be private.
void write_files(const fs::path& folder, const Answer& a, const Evaluation& e,
                 const std::vector<std::string>& classes, const std::string& title,
                 Reporter& reporter) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + ": cannot make the folder: " + error.message());
  write_atomically(folder / "evaluation.json",
                   a.json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                   0600);
  if (!draw_evaluation(e, classes, title, folder, 0600))
    reporter.warn("no pictures: gnuplot is missing or failed");
}

int evaluate(const TrainConfig& config) {
  const EvalFlags& flags = config.of<EvalFlags>();
  const ReleasedModel model = model_for(config, flags.run_dir);
  check_thresholds(flags, model.network);
  if (!flags.out.empty()) check_can_be_folder(flags.out);
  Reporter reporter(config.json);
  const Backend backend =
      choose_backend(config.device, [&](const std::string& s) { reporter.info(s); });
  ScoringRequest request = scoring_request(config);
  if (request.data.dataset.empty()) request.data.dataset = request.data.test_path;
  if (request.data.dataset.empty()) {
    // The model stores only the name of a table or folder, not its path, so the user must give the
    // path.
    if (!is_named_dataset(model.dataset))
      throw InputError("eval " + flags.run_dir +
                       ": give --dataset, the rows to score; the model "
                       "was trained on " +
                       shown(model.dataset) + ", and does not know where that is");
    request.data.dataset = model.dataset;
  }
  request.group_by = flags.group_by;
  const bool named = is_named_dataset(request.data.dataset);
  std::optional<Busy> scoring(std::in_place, scoring_text(request.data.dataset),
                              reporter.shown_work());
  request.data.progress = &*scoring;
  Scorer scorer(model, flags.run_dir, request, backend, reporter);
  const Evaluators evaluators = evaluators_of(scorer, model, flags.group_by, flags.threshold);
  scoring->next("evaluating");
  const Evaluation found = evaluators.all.evaluation();
  scoring.reset();
  if (!named)
    reporter.warn(
        "these are exact numbers of the rows that were scored, and no certificate covers them: do "
        "not publish them if the rows are private");
  const std::vector<std::string> classes = model.inputs.classes();
  Answer a{.json = to_json(found, classes), .rows = table_of(found, classes)};
  a.json["dataset"] = scorer.data_name();
  a.json["model"] = model.network.spec.name;
  a.json["run_dir"] = flags.run_dir;
  a.json["backend"] = backend.name;
  a.rows.emplace_back("model", model.network.spec.name);
  add_groups(a, evaluators, flags.group_by, classes);
  add_thresholds(a, evaluators.all, found, flags, classes);
  if (!flags.out.empty())
    write_files(flags.out, a, found, classes, model.network.spec.name + " on " + scorer.data_name(),
                reporter);
  print(a, config.json);
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "eval",
               .description = "Accuracy, AUC, calibration and more of a released model",
               .examples = kEvalExamples,
               .options = eval_options(),
               .run = [](const TrainConfig& c) { return evaluate(c); }});
}

}  // namespace cudp
