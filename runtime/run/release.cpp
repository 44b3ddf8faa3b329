#include "runtime/run/release.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/files.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/results/curves.hpp"
#include "runtime/run/released_text.hpp"

namespace cudp {

namespace {

bool has_private_test(const DataSplit& data) {
  return data.test.size() > 0 && !data.test_is_public;
}

std::vector<MetricsRow> public_part(const DataSplit& data, const std::vector<MetricsRow>& metrics) {
  return has_private_test(data) ? without_test(metrics) : metrics;
}

bool gives_privacy(const Experiment& e) { return method_entry(e.config.method).gives_privacy; }

constexpr const char* kNoPrivacy =
    "No privacy.\n"
    "\n"
    "This model was trained without differential privacy, for comparison. Nothing of this run may "
    "be\n"
    "released: its weights and its metrics may show any training example. They are in "
    "../private.\n";

/// The network's tensors, and those that are always zero, which PyTorch's layers have.
TensorFile released_tensors(const Network& network, std::vector<float> parameters) {
  TensorFile file{.tensors = network.parameters, .values = std::move(parameters), .metadata = {}};
  for (ParameterTensor t : network.zeros) {
    t.offset = file.values.size();
    file.values.resize(t.offset + t.size, 0.0f);
    file.tensors.push_back(std::move(t));
  }
  return file;
}

}  // namespace

void write_metrics(const RunFolder& folder, const Experiment& e,
                   const std::vector<MetricsRow>& metrics) {
  const DataSplit& data = e.data;
  if (!gives_privacy(e)) {
    replace_file(folder.private_metrics(), encode_metrics(metrics), 0600);
    return;
  }
  replace_file(folder.metrics(), encode_metrics(public_part(data, metrics)));
  if (has_private_test(data)) replace_file(folder.private_metrics(), encode_metrics(metrics), 0600);
}

void write_release(const RunFolder& folder, const Experiment& e, std::vector<float> parameters,
                   const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter) {
  TensorFile file = released_tensors(e.network, std::move(parameters));
  const Shape& in = e.network.input;
  file.metadata = {{"format", "pt"},  // layouts are PyTorch's
                   {"model", e.model_text},
                   {"activation", e.config.activation},
                   {"input", fmt::format("{}x{}x{}", in.channels, in.height, in.width)},
                   {"classes", std::to_string(e.network.classes)},
                   {"dataset", e.data.name}};
  if (e.config.features != Features::none) {
    file.metadata["features"] = name_of(e.config.features);
    file.metadata["feature-groups"] = std::to_string(e.config.feature_groups);
    file.metadata["feature-standardise"] = e.config.feature_standardise ? "true" : "false";
  }
  add_release(file, feature_settings(e.config), e.feature_release);
  if (e.data.text != nullptr) {
    add_text(file, *e.data.text);
    const std::string words = e.data.text->vocabulary.text();
    if (gives_privacy(e))
      write_atomically(folder.vocabulary(), words);
    else
      write_atomically(folder.private_vocabulary(), words, 0600);
  }
  write_metrics(folder, e, metrics);
  if (!gives_privacy(e)) {
    write_atomically(folder.private_model(), encode_safetensors(file), 0600);
    write_atomically(folder.no_privacy(), kNoPrivacy);
    if (!draw_curves(metrics,
                     fmt::format("{} on {}, without privacy", e.network.spec.name, e.data.name),
                     folder.private_curves(), 0600))
      reporter.warn("no picture of the curves: gnuplot is missing or failed");
    return;
  }
  write_atomically(folder.model(), encode_safetensors(file));
  write_atomically(folder.certificate(), certificate.dump(2) + "\n");
  const std::string title =
      fmt::format("{} on {}, epsilon {:.3g} at delta {:.2g}", e.network.spec.name, e.data.name,
                  certificate["epsilon"].get<double>(), certificate["delta"].get<double>());
  bool drawn = draw_curves(public_part(e.data, metrics), title, folder.curves());
  if (has_private_test(e.data))
    drawn = draw_curves(metrics, title, folder.private_curves(), 0600) && drawn;
  if (!drawn) reporter.warn("no picture of the curves: gnuplot is missing or failed");
}

}  // namespace cudp
