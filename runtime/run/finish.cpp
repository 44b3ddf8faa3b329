#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Removes what only a run in progress needs: key and checkpoints.
void remove_leftovers(const RunFolder& folder) {
  erase_key(folder.key());
  remove_checkpoints(folder.checkpoints());
}

RunResult result_of(const Run& run, const nlohmann::ordered_json& certificate) {
  const Experiment& e = run.experiment;
  RunResult r;
  r["test_set"] = e.data.test.size() == 0 ? "none" : e.data.test_is_public ? "public" : "private";
  const Metrics& test = run.metrics.back().test;
  for (std::size_t i = 0; i < test.values.size(); ++i)
    if (metrics()[i].in_result) r[metrics()[i].key] = test.values[i];
  r["epsilon"] = certificate["epsilon"];
  r["delta"] = certificate["delta"];
  run.method->report(r, run.step);
  r["seconds"] = run.seconds;
  // By numbers that were paid for: with the real ones, seconds would tell them.
  r["examples_per_second"] = run.seconds > 0.0 ? static_cast<double>(run.step) *
                                                     run.method->examples_per_step() / run.seconds
                                               : 0.0;
  r["run_dir"] = run.folder.root().string();
  r["for_release"] = certificate["for_release"];
  if (certificate.contains("not_for_release"))
    r["not_for_release"] = certificate["not_for_release"];
  r["dataset"] = e.data.name;
  r["model"] = e.network.spec.name;
  r["parameters"] = e.network.parameter_count;
  r["backend"] = e.backend.name;
  return r;
}

/// Test rows are no training rows: their accuracy tells no more of these than the released model.
void warn_of_guessing(const Run& run, Reporter& reporter) {
  const std::optional<double> accuracy = run.metrics.back().test.accuracy();
  const int classes = run.experiment.data.test.classes;
  if (accuracy && classes > 1 && *accuracy <= 1.2 / classes)
    reporter.warn(fmt::format(
        "test accuracy {:.2f} % of {} classes is that of guessing: training diverged, or has not "
        "learned anything yet; try a lower lr, or more epochs",
        100.0 * *accuracy, classes));
}

}  // namespace

RunResult finish(Run& run, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const auto certificate = make_certificate(e, run.size, *run.method, run.budget->ledger(),
                                            run.gate->listed(), run.step);
  std::vector<float> parameters = run.method->parameters();
  if (!std::ranges::all_of(parameters, [](float w) { return std::isfinite(w); }))
    reporter.warn("the model holds numbers that are not finite: training diverged; try a lower lr");
  warn_of_guessing(run, reporter);
  write_release(run.folder, e, std::move(parameters), run.metrics, certificate, reporter);
  RunResult result = result_of(run, certificate);
  // By this the run is complete.
  write_atomically(run.folder.result(), result.dump(2) + "\n", 0600);
  remove_leftovers(run.folder);
  return result;
}

std::optional<RunResult> finished_result(const RunFolder& folder) {
  if (!fs::exists(folder.result())) return std::nullopt;
  RunResult result = RunResult::parse(read_file(folder.result()), nullptr, false);
  if (!result.is_object()) throw Error(folder.result().string() + ": damaged");
  result["run_dir"] = folder.root().string();  // it may have been moved
  remove_leftovers(folder);
  return result;
}

}  // namespace cudp
