#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/run.hpp"
#include "runtime/training/certify.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Removes what only a run in progress needs: key and checkpoints.
void remove_leftovers(const RunFolder& folder) {
  erase_key(folder.key());
  remove_checkpoints(folder.checkpoints());
}

const char* test_set_name(Certificate::TestSet test_set) {
  switch (test_set) {
    case Certificate::TestSet::public_rows:
      return "public";
    case Certificate::TestSet::private_rows:
      return "private";
    default:
      return "none";
  }
}

RunResult result_of(const Run& run, const Certificate& certificate) {
  const Training& t = *run.training;
  const Experiment& e = t.experiment();
  const double seconds = t.seconds();
  // These numbers were paid for: with the real ones, seconds would tell them.
  const double examples = static_cast<double>(t.step()) * t.method().examples_per_step();
  return {.test_set = test_set_name(certificate.test_set),
          .test = t.metrics().back().test,
          .epsilon = certificate.promise.epsilon,
          .delta = certificate.promise.delta,
          .outcome = t.method().outcome(t.step()),
          .seconds = seconds,
          .examples_per_second = seconds > 0.0 ? examples / seconds : 0.0,
          .run_dir = run.folder.root().string(),
          .for_release = certificate.for_release(),
          .not_for_release = certificate.not_for_release,
          .dataset = e.data.name,
          .model = e.network.spec.name,
          .parameters = e.network.parameter_count,
          .backend = e.backend.name};
}

/// Test rows are no training rows: their accuracy tells no more of these than the released model.
void warn_of_guessing(const Run& run) {
  const std::optional<double> accuracy = run.training->metrics().back().test.accuracy();
  const int classes = run.training->experiment().data.test.classes;
  if (accuracy && classes > 1 && *accuracy <= 1.2 / classes)
    run.reporter().warn(fmt::format(
        "test accuracy {:.2f} % of {} classes is that of guessing: training diverged, or has not "
        "learned anything yet; try a lower lr, or more epochs",
        100.0 * *accuracy, classes));
}

}  // namespace

RunResult train(Run& run) {
  run.advance();
  const Training& t = *run.training;
  const Certificate certificate = t.certificate();
  const ReleasedModel model = t.model();
  if (!std::ranges::all_of(model.parameters, [](float w) { return std::isfinite(w); }))
    run.reporter().warn(
        "the model holds numbers that are not finite: training diverged; try a lower lr");
  warn_of_guessing(run);
  const Outputs outputs = run.outputs();
  outputs.write_metrics(t.metrics());
  outputs.write_model(model);
  outputs.write_certificate(certificate);
  if (!outputs.draw_curves(t.metrics(), model.network.spec.name, certificate))
    run.reporter().warn("no picture of the curves: gnuplot is missing or failed");
  RunResult result = result_of(run, certificate);
  // The run is complete once this is written.
  write_atomically(run.folder.result(), to_json(result).dump(2) + "\n", 0600);
  remove_leftovers(run.folder);
  return result;
}

std::optional<RunResult> finished_result(const RunFolder& folder) {
  if (!fs::exists(folder.result())) return std::nullopt;
  const auto json = nlohmann::ordered_json::parse(read_file(folder.result()), nullptr, false);
  if (!json.is_object()) throw Error(folder.result().string() + ": damaged");
  RunResult result = result_from_json(json);
  result.run_dir = folder.root().string();  // it may have been moved
  remove_leftovers(folder);
  return result;
}

}  // namespace cudp
