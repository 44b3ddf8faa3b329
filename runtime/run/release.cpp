#include "runtime/run/release.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/options.hpp"
#include "runtime/config/settings.hpp"
#include "runtime/features/features.hpp"
#include "runtime/run/certificate.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"

namespace fs = std::filesystem;

namespace cudp {

namespace {

bool has_private_test(const DataSplit& data) {
  return data.test.size() > 0 && !data.test_is_public;
}

std::vector<MetricsRow> public_part(const DataSplit& data, const std::vector<MetricsRow>& metrics) {
  return has_private_test(data) ? without_test(metrics) : metrics;
}

}  // namespace

fs::path run_place(const Experiment& e) {
  return e.config.out.empty() ? default_run_folder(e.data.name + "-" + e.network.spec.name)
                              : fs::path(e.config.out);
}

RunFolder publish_run(NewRunFolder& place, const Checkpoint& first, const RandomKey& key,
                      const Seal& seal, std::optional<FolderLock>& lock, Reporter& reporter) {
  const RunFolder made = place.folder();
  save_checkpoint(made.checkpoints(), first, seal);
  write_key(made.key(), key);
  lock.emplace(made.checkpoints());
  RunFolder published = place.publish();
  reporter.keep_log(published.log());
  return published;
}

void plan_from_size(NewRunFolder& place, const Experiment& e, const TrainingSize& size,
                    const std::function<void()>& plan) {
  try {
    plan();
  } catch (const Error& reason) {
    if (size.is_public()) throw;
    PrivacyPlan counted;
    counted.delta = *e.config.delta;
    counted.size_noise = size.noise;
    privacy::Ledger ledger;
    for (const privacy::Phase& release : releases(counted, 0)) ledger.charge(release);
    const RunFolder folder = place.folder();
    write_atomically(folder.config(), write_config(e.config, Audience::release));
    write_atomically(folder.ledger(), ledger.to_text(), 0600);
    write_atomically(folder.certificate(),
                     make_refusal_certificate({.config = e.config,
                                               .plan = counted,
                                               .ledger = ledger,
                                               .dataset = e.data.name,
                                               .backend = e.backend.name,
                                               .test_set = test_set_text(e.data),
                                               .training_size = size.value,
                                               .unsafe = unsafe_flags(e)})
                             .dump(2) +
                         "\n");
    const std::string certificate = place.publish().certificate().string();
    throw Error(std::string(reason.what()) +
                    "; the noisy number of training examples was paid for: " + certificate,
                reason.code());
  }
}

void warn_of_weak_privacy(const TrainingSize& size, double epsilon, double delta,
                          Reporter& reporter) {
  for (const std::string& line : privacy_warnings(size.value, epsilon, delta)) reporter.warn(line);
}

std::string test_set_text(const DataSplit& data) {
  if (data.test.size() == 0) return "none";
  return data.test_is_public
             ? "public; read for test_accuracy only, not covered by the promise"
             : "not public: what was measured on it is not released, nor covered by the promise";
}

std::vector<std::string> unsafe_flags(const Experiment& e) {
  std::vector<std::string> flags = e.data.unsafe;
  if (e.config.unsafe_diagnostics) flags.emplace_back("unsafe-diagnostics");
  return flags;
}

void measure(Engine& engine, const Dataset& test, bool averaged, MetricsRow& row) {
  if (test.size() == 0) return;
  const Accuracy a = engine.evaluate(test, averaged);
  row.test_accuracy = a.value();
  row.test_loss = a.mean_loss;
}

void write_metrics(const RunFolder& folder, const DataSplit& data,
                   const std::vector<MetricsRow>& metrics) {
  replace_file(folder.metrics(), encode_metrics(public_part(data, metrics)));
  if (has_private_test(data)) replace_file(folder.private_metrics(), encode_metrics(metrics), 0600);
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
  write_metrics(folder, e.data, metrics);
  write_atomically(folder.certificate(), certificate.dump(2) + "\n");
  const std::string title =
      fmt::format("{} on {}, epsilon {:.3g} at delta {:.2g}", e.network.spec.name, e.data.name,
                  certificate["epsilon"].get<double>(), certificate["delta"].get<double>());
  bool drawn = draw_curves(public_part(e.data, metrics), title, folder.curves());
  if (has_private_test(e.data))
    drawn = draw_curves(metrics, title, folder.private_curves()) && drawn;
  if (!drawn) reporter.warn("no picture of the curves: gnuplot is missing or failed");
}

nlohmann::ordered_json complete(const RunFolder& folder, const Experiment& e,
                                const MetricsRow& last, const nlohmann::ordered_json& certificate,
                                nlohmann::ordered_json numbers) {
  nlohmann::ordered_json all;
  all["test_set"] = e.data.test.size() == 0 ? "none" : e.data.test_is_public ? "public" : "private";
  if (last.test_accuracy) all["test_accuracy"] = *last.test_accuracy;
  all.update(numbers);
  numbers = std::move(all);
  numbers["run_dir"] = folder.root().string();
  numbers["for_release"] = certificate["for_release"];
  if (certificate.contains("not_for_release"))
    numbers["not_for_release"] = certificate["not_for_release"];
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
