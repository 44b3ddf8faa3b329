#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/config/options.hpp"
#include "runtime/error.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/train/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Flags that the certificate must show.
std::vector<std::string> unsafe_flags(const Experiment& e) {
  std::vector<std::string> flags = e.data.unsafe;
  if (e.config.unsafe_diagnostics) flags.emplace_back("unsafe-diagnostics");
  return flags;
}

/// The weights that are released, with what `cudp eval` needs to rebuild the network.
TensorFile released_model(Run& run) {
  const Experiment& e = run.experiment;
  TrainState state = run.engine->state();
  TensorFile file;
  file.tensors = e.network.parameters;
  file.values = e.config.ema > 0.0 ? std::move(state.average) : std::move(state.parameters);
  const Shape& in = e.network.input;
  file.metadata = {{"format", "pt"},  // layouts are PyTorch's
                   {"model", e.model_text},
                   {"activation", e.config.activation},
                   {"input", fmt::format("{}x{}x{}", in.channels, in.height, in.width)},
                   {"classes", std::to_string(e.network.classes)},
                   {"dataset", e.data.name}};
  if (e.config.features != Features::none) {
    file.metadata["features"] = std::get<std::string>(*find_option("features")->get(e.config));
    file.metadata["feature-groups"] = std::to_string(e.config.feature_groups);
  }
  return file;
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code ignored;
  fs::remove(folder.key(), ignored);
  remove_checkpoints(folder.checkpoints());
}

}  // namespace

RunResult finish(Run& run, double examples_per_second, Reporter& reporter) {
  const Experiment& e = run.experiment;
  const auto certificate = make_certificate({.config = e.config,
                                             .plan = run.plan,
                                             .ledger = run.ledger,
                                             .dataset = e.data.name,
                                             .backend = e.backend.name,
                                             .training_size = run.size.value,
                                             .unsafe = unsafe_flags(e)});
  write_atomically(run.folder.model(), encode_safetensors(released_model(run)));
  write_atomically(run.folder.metrics(), encode_metrics(run.metrics));
  write_atomically(run.folder.certificate(), certificate.dump(2) + "\n");
  const TrainState end = run.engine->state();
  if (!std::ranges::all_of(end.parameters, [](float w) { return std::isfinite(w); }))
    reporter.warn("the model holds numbers that are not finite: training diverged; try a lower lr");
  const std::string title =
      fmt::format("{} on {}, epsilon {:.3g} at delta {:.2g}", e.network.spec.name, e.data.name,
                  certificate["epsilon"].get<double>(), run.plan.delta);
  if (!draw_curves(run.metrics, title, run.folder.curves()))
    reporter.warn("no picture of the curves: gnuplot is missing or failed");

  RunResult result;
  result["test_accuracy"] = run.metrics.back().test_accuracy;
  result["epsilon"] = certificate["epsilon"];
  result["delta"] = run.plan.delta;
  result["sigma"] = run.plan.noise_multiplier;
  result["steps"] = run.step;
  result["seconds"] = run.seconds;
  result["examples_per_second"] = examples_per_second;
  result["run_dir"] = run.folder.root().string();
  result["for_release"] = certificate["for_release"];
  result["dataset"] = e.data.name;
  result["model"] = e.network.spec.name;
  result["parameters"] = e.network.parameter_count;
  result["backend"] = e.backend.name;
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
