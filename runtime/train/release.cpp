#include "runtime/train/release.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/config/options.hpp"
#include "runtime/features/features.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/files.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/safetensors.hpp"

namespace fs = std::filesystem;

namespace cudp {

fs::path run_place(const Experiment& e) {
  return e.config.out.empty() ? default_run_folder(e.data.name + "-" + e.network.spec.name)
                              : fs::path(e.config.out);
}

RunFolder publish_run(NewRunFolder& place, const Checkpoint& first, const RandomKey& key,
                      std::optional<FolderLock>& lock, Reporter& reporter) {
  const RunFolder made = place.folder();
  save_checkpoint(made.checkpoints(), first);
  write_key(made.key(), key);
  lock.emplace(made.checkpoints());
  RunFolder published = place.publish();
  reporter.keep_log(published.log());
  return published;
}

std::vector<std::string> unsafe_flags(const Experiment& e) {
  std::vector<std::string> flags = e.data.unsafe;
  if (e.config.unsafe_diagnostics) flags.emplace_back("unsafe-diagnostics");
  return flags;
}

void write_release(const RunFolder& folder, const Experiment& e, std::vector<float> parameters,
                   const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter) {
  TensorFile file;
  file.tensors = e.network.parameters;
  file.values = std::move(parameters);
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
    file.metadata["feature-standardise"] = e.config.feature_standardise ? "true" : "false";
  }
  add_release(file, feature_settings(e.config), e.feature_release);
  write_atomically(folder.model(), encode_safetensors(file));
  write_atomically(folder.metrics(), encode_metrics(metrics));
  write_atomically(folder.certificate(), certificate.dump(2) + "\n");
  const std::string title =
      fmt::format("{} on {}, epsilon {:.3g} at delta {:.2g}", e.network.spec.name, e.data.name,
                  certificate["epsilon"].get<double>(), certificate["delta"].get<double>());
  if (!draw_curves(metrics, title, folder.curves()))
    reporter.warn("no picture of the curves: gnuplot is missing or failed");
}

nlohmann::ordered_json complete(const RunFolder& folder, const Experiment& e,
                                const nlohmann::ordered_json& certificate,
                                nlohmann::ordered_json numbers) {
  numbers["run_dir"] = folder.root().string();
  numbers["for_release"] = certificate["for_release"];
  numbers["dataset"] = e.data.name;
  numbers["model"] = e.network.spec.name;
  numbers["parameters"] = e.network.parameter_count;
  numbers["backend"] = e.backend.name;
  write_atomically(folder.result(), numbers.dump(2) + "\n", 0600);
  remove_leftovers(folder);
  return numbers;
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code ignored;
  fs::remove(folder.key(), ignored);
  remove_checkpoints(folder.checkpoints());
}

}  // namespace cudp
