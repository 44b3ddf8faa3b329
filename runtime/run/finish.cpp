#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "models/freeze.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/kept_table.hpp"
#include "runtime/report/write.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/settings.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Purpose (argument of Authenticator::tag) of the authentication code of figures_file(), the file
/// with noisy test results, so that a file of another kind cannot pass for it.
constexpr std::string_view kFigures = "figures of held-out rows";

/// Returns the path of the file that keeps the noisy test results of held-out rows from their
/// release until the run is complete.
fs::path figures_file(const RunFolder& folder) { return folder.owner("holdout-figures"); }

/// Formats the noisy test results of held-out rows as JSON. Numbers are hexadecimal texts, so that
/// they are read back exactly.
std::string encode_figures(const HoldoutFigures& f) {
  const auto exact = [](double x) { return fmt::format("{:a}", x); };
  nlohmann::ordered_json j = {{"noisy", nlohmann::ordered_json::array()},
                              {"bars", nlohmann::ordered_json::array()}};
  for (const double noisy : f.noisy) j["noisy"].push_back(exact(noisy));
  for (const ErrorBar& b : f.bars)
    j["bars"].push_back({b.name, exact(b.value), exact(b.low), exact(b.high)});
  return j.dump(2);
}

/// Replaces the noisy numbers and the metrics of `f` by those in `text`, which encode_figures()
/// wrote.
void decode_figures(const std::string& text, HoldoutFigures& f) {
  const auto j = nlohmann::ordered_json::parse(text);
  const auto number = [](const nlohmann::ordered_json& x) {
    return std::strtod(x.get<std::string>().c_str(), nullptr);
  };
  f.noisy.clear();
  f.bars.clear();
  for (const auto& noisy : j.at("noisy")) f.noisy.push_back(number(noisy));
  for (const auto& b : j.at("bars"))
    f.bars.push_back({b[0].get<std::string>(), number(b[1]), number(b[2]), number(b[3])});
}

/// Returns the noisy test results of held-out rows, which the run releases; nullopt if there are
/// none. They are stored on disk before they are published, and a resumed run publishes the stored
/// ones. It must not compute them again: a logit might differ in its last bit (cuDNN), and two
/// different results with the same noise would reveal their difference. Throws BudgetError if
/// results were published and the stored ones are lost, InputError if another run wrote them.
std::optional<HoldoutFigures> figures_to_release(const Run& run) {
  std::optional<HoldoutFigures> figures = run.training->holdout_figures();
  if (!figures) return figures;
  const fs::path path = figures_file(run.folder);
  if (fs::exists(path)) {
    const AuthenticatedFile kept = read_authenticated(path);
    if (!run.authenticator.matches(kFigures, kept.content, kept.tag))
      throw InputError(path.string() + ": expected the figures that this run wrote, found others");
    decode_figures(kept.content, *figures);
  } else if (fs::exists(run.folder.holdout())) {
    throw BudgetError(path.string() +
                      ": expected the figures of held-out rows that were released, found none; "
                      "their budget pays for them once");
  } else {
    write_authenticated(path, kFigures, encode_figures(*figures), run.authenticator,
                        run.folder.sync());
  }
  return figures;
}

const char* test_set_name(privacy::Certificate::TestSet test_set) {
  switch (test_set) {
    case privacy::Certificate::TestSet::public_rows:
      return "public";
    case privacy::Certificate::TestSet::private_rows:
      return "private";
    default:
      return "none";
  }
}

RunResult result_of(const Run& run, const privacy::Certificate& certificate,
                    const std::optional<HoldoutFigures>& figures,
                    std::optional<std::string> majority_class) {
  const Training& t = *run.training;
  const Experiment& e = t.experiment();
  const double seconds = t.seconds();
  // All numbers in the result are released or public. The throughput is therefore computed from the
  // expected number of examples; from the exact one it would reveal that number.
  const double examples = static_cast<double>(t.step()) * t.method().examples_per_step();
  std::optional<double> training_epsilon, training_delta;
  if (certificate.holdout) {
    training_epsilon = certificate.promise.epsilon;
    training_delta = certificate.promise.delta;
  }
  return {.test_set = test_set_name(certificate.test_set),
          .test = t.metrics().back().test,
          .majority_class = std::move(majority_class),
          .epsilon = certificate.epsilon,
          .delta = certificate.delta,
          .training_epsilon = training_epsilon,
          .training_delta = training_delta,
          .held_out = figures ? figures->bars : std::vector<ErrorBar>{},
          .outcome = t.method().outcome(t.step()),
          .seconds = seconds,
          .examples_per_second = seconds > 0.0 ? examples / seconds : 0.0,
          .run_dir = run.folder.root().string(),
          .for_release = certificate.for_release(),
          .not_for_release = certificate.not_for_release,
          .dataset = e.data.name,
          .model = e.network.spec.name,
          .parameters = count_of_all_parameters(e.network),
          .backend = e.backend.name};
}

/// Warns if the model is hardly better than guessing. Because the warning depends on the test rows,
/// it goes to the owner only, unless these are public. (About training rows it reveals no more than
/// the released model does.)
void warn_of_guessing(const Run& run, const Evaluation& e) {
  const bool target = prediction_kind(e) == PredictionKind::target;
  if (target ? e.target.r2 > 0.0 : e.accuracy > 1.2 / e.classes) return;
  const std::string line =
      target ? fmt::format(
                   "test RMSE {:.6g} is no better than {:.6g}, that of always predicting the mean: "
                   "training diverged, or has not learned anything yet; try a lower lr, or more "
                   "epochs",
                   e.target.rmse, e.target.mean_baseline_rmse)
             : fmt::format(
                   "test accuracy {:.2f} % of {} classes is that of guessing: training diverged, "
                   "or has not "
                   "learned anything yet; try a lower lr, or more epochs",
                   100.0 * e.accuracy, e.classes);
  if (run.training->experiment().data.test_is_public)
    run.reporter().warn(line);
  else
    run.reporter().report_to_owner(line);
}

/// Writes the evaluation on the test set to a file and starts to draw its pictures. If the test
/// rows are private, the files are in private/ and readable by the owner only. pictures: null to
/// draw none. Returns the name of the most frequent class; nullopt if there is no test set, or for
/// a regression model.
std::optional<std::string> evaluate(const Run& run, Pictures* pictures) {
  const std::optional<Evaluation> e = run.training->evaluate();
  if (!e) return std::nullopt;
  const Experiment& experiment = run.training->experiment();
  const std::vector<std::string> classes = experiment.inputs.classes();
  if (!experiment.config.holdout) warn_of_guessing(run, *e);
  // Exact figures of held-out rows are only in the private folder.
  if (!experiment.data.test_is_public && !experiment.config.holdout)
    for (const auto& [name, value] : table_of(*e, classes))
      run.reporter().report_to_owner(name.empty() ? value : fmt::format("{}: {}", name, value));
  const std::string title = experiment.network.spec.name + " on " + experiment.data.name;
  run.outputs().write_evaluation(*e, classes, title, pictures);
  if (prediction_kind(*e) == PredictionKind::target) return std::nullopt;
  return class_name(classes, e->majority_class);
}

/// For a run that is complete: throws InputError if the user resumes it with flags that would
/// change its settings.
void check_asked(const Settings& flags, const RunFolder& folder) {
  const bool released = fs::exists(folder.config());
  const fs::path config = released ? folder.config() : folder.owner(RunFolder::kConfig);
  TrainConfig trained;
  apply_settings(read_settings(config), trained);
  (void)resolve_resumed(flags, trained);
}

}  // namespace

void remove_leftovers(const RunFolder& folder) {
  remove_kept_table(folder.checkpoints());
  erase_key(folder.key());
  std::error_code none;
  fs::remove(figures_file(folder), none);
  remove_checkpoints(folder.checkpoints());
}

RunResult train(Run& run, DrawPictures draw) {
  run.advance();
  Timings& timings = run.reporter().timings();
  timings.enter("certificate");
  const Training& t = *run.training;
  const privacy::Certificate certificate = t.certificate();
  timings.enter("results");
  const ReleasedModel model = t.model();
  if (!std::ranges::all_of(model.parameters, [](float w) { return std::isfinite(w); }))
    run.reporter().warn(
        "the model holds numbers that are not finite: training diverged; try a lower lr");
  // Results are written without syncing each file. They are synced together, in three groups: first
  // the files from which the pages are made, then the pages, then the certificate, which states
  // that the pages exist.
  const RunFolder unsynced(run.folder.root(), Sync::no);
  const Outputs outputs(unsynced, t.experiment());
  const std::optional<HoldoutFigures> figures = figures_to_release(run);
  if (figures) outputs.write_holdout(*figures, t.experiment().inputs.classes());
  outputs.write_last_metrics(t.metrics());
  const bool draws = draw == DrawPictures::yes;
  Pictures figures_drawn, curves_drawn;
  std::optional<std::string> majority_class = evaluate(run, draws ? &figures_drawn : nullptr);
  outputs.write_model(model);
  const bool syncs = run.folder.sync() == Sync::yes;
  const fs::path release = run.folder.root() / "release";
  if (syncs) sync_files(release);
  // Metrics that are not for release are in private/.
  if (syncs && fs::exists(run.folder.owner(RunFolder::kMetrics)))
    sync_files(run.folder.root() / "private");
  const std::vector<fs::path> pages = outputs.write_pages(certificate);
  if (syncs && !pages.empty()) sync_files(release, pages);
  run.outputs().write_certificate(certificate);
  write_private_page(run.folder.root(), run.folder.sync());
  const bool has_curves = draws && outputs.start_curves(t.metrics(), model.network.spec.name,
                                                        certificate, curves_drawn);
  RunResult result = result_of(run, certificate, figures, std::move(majority_class));
  timings.enter("pictures");
  if (!figures_drawn.finish())
    run.reporter().warn("no pictures of the evaluation: gnuplot is missing or failed");
  if (draws && !(curves_drawn.finish() && has_curves))
    run.reporter().warn("no picture of the curves: gnuplot is missing or failed");
  timings.enter("results");
  // The run is complete after this write.
  run.folder.write(run.folder.result(), to_json(result).dump(2) + "\n", 0600);
  remove_leftovers(run.folder);
  if (t.is_unchanged())
    throw InputError("no weight changed: " + result.run_dir + " has the weights of " +
                     t.experiment().initial->input.file +
                     " as they were; try a larger lr, more epochs, or less weight frozen");
  return result;
}

std::optional<RunResult> finished_result(const Settings& flags) {
  TrainConfig asked;
  apply_settings(flags, asked);
  const RunFolder folder(asked.resume);
  check_not_of_tuning(folder.root());
  if (!fs::exists(folder.result())) return std::nullopt;
  check_asked(flags, folder);
  std::optional<RunResult> result = stored_result(folder);
  remove_leftovers(folder);
  return result;
}

std::optional<RunResult> stored_result(const RunFolder& folder) {
  if (!fs::exists(folder.result())) return std::nullopt;
  const auto json = nlohmann::ordered_json::parse(read_file(folder.result()), nullptr, false);
  if (!json.is_object()) throw Error(folder.result().string() + ": damaged");
  RunResult result = result_from_json(json);
  result.run_dir = folder.root().string();  // the folder may have been moved
  return result;
}

}  // namespace cudp
