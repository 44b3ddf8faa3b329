#include "runtime/report/run_facts.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/base/error.hpp"
#include "runtime/report/sentences.hpp"
#include "runtime/results/curves.hpp"

namespace cudp {
namespace {

/// Returns the network's name, which the metadata of the model's file state in the list of layers;
/// "" if there is none.
std::string network_name(const TensorFile& model) {
  const auto text = model.metadata.find("model");
  if (text == model.metadata.end()) return "";
  const std::string key = "\nname = \"";
  const std::size_t begin = ("\n" + text->second).find(key);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + key.size() - 1;
  return text->second.substr(from, text->second.find('"', from) - from);
}

}  // namespace

std::string RunFacts::setting(const char* key) const {
  return settings.has(key) ? settings.text(key) : "";
}

std::string RunFacts::subject() const {
  return (model.empty() ? "" : model + ", ") + setting("method") + ", on " + quoted(dataset);
}

RunFacts facts_of(const ReportFiles& files) {
  RunFacts f;
  if (!files.certificate.empty())
    f.certificate = parse_run_certificate(files.certificate, "privacy.json");
  try {
    f.settings = verify::Settings(files.settings);
  } catch (const std::invalid_argument& e) {
    throw InputError(std::string("config.toml: ") + e.what());
  }
  f.rows = rows_of(files);
  f.has_unpaid = files.has_unpaid;
  if (!files.schema.empty()) f.schema = parse_schema(files.schema, "schema.toml");
  f.dataset = f.certificate ? f.certificate->text("dataset") : f.setting("dataset");
  if (files.model) {
    const auto dataset = files.model->metadata.find("dataset");
    if (!f.certificate && dataset != files.model->metadata.end()) f.dataset = dataset->second;
    f.model = network_name(*files.model);
    if (f.model.empty()) f.model = f.setting("model");
    constexpr const char* kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (f.model.find_first_not_of(kPlain) != std::string::npos) f.model = quoted(f.model);
  }
  std::string stated = f.setting("metric");
  if (stated.empty() && f.schema) stated = f.schema->metric;
  const bool is_public = f.certificate && f.certificate->text("test_set").starts_with("public");
  f.metric = curve_metric(f.rows, stated, is_public || !f.certificate);
  return f;
}

const Metric& metric_of(PredictionKind kind, const std::string& key) {
  const std::span<const Metric> all = metrics(kind);
  const auto found = std::ranges::find_if(all, [&](const Metric& m) { return key == m.key; });
  return found == all.end() ? all.front() : *found;
}

std::string name_of_test(const Metric& metric) {
  const std::string name = metric.name;
  return name.starts_with("test ") ? name : "test " + name;
}

}  // namespace cudp
