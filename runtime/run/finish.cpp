#include <algorithm>
#include <cmath>

#include "runtime/base/error.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/run/release.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {

RunResult finish(Run& run, double examples_per_second, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const auto certificate = make_certificate({.config = e.config,
                                             .plan = run.plan,
                                             .ledger = run.ledger,
                                             .dataset = e.data.name,
                                             .backend = e.backend.name,
                                             .test_set = test_set_text(e.data),
                                             .training_size = run.size.value,
                                             .unsafe = unsafe_flags(e)});
  TrainState end = run.engine->state();
  if (!std::ranges::all_of(end.parameters, [](float w) { return std::isfinite(w); }))
    reporter.warn("the model holds numbers that are not finite: training diverged; try a lower lr");
  write_release(run.folder, e, e.config.ema > 0.0 ? end.average : end.parameters, run.metrics,
                certificate, reporter);

  RunResult result;
  result["epsilon"] = certificate["epsilon"];
  result["delta"] = run.plan.delta;
  result["sigma"] = run.plan.noise_multiplier;
  result["steps"] = run.step;
  result["seconds"] = run.seconds;
  result["examples_per_second"] = examples_per_second;
  return complete(run.folder, e, run.metrics.back(), certificate, std::move(result));
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
