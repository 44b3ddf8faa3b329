#include "runtime/results/result.hpp"

#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Calls visit(key, field) for each field of a result, in the order of the file.
template <class Any, class Visit>
void for_each_field(Any& r, const Visit& visit) {
  visit("test_set", r.test_set);
  visit.metrics(r.test);
  visit("majority_class", r.majority_class);
  visit("epsilon", r.epsilon);
  visit("delta", r.delta);
  visit("training_epsilon", r.training_epsilon);
  visit("training_delta", r.training_delta);
  visit("held_out", r.held_out);
  visit("sigma", r.outcome.sigma);
  visit("steps", r.outcome.steps);
  visit("releases", r.outcome.releases);
  visit("compared_with", r.outcome.compared_with);
  visit("seconds", r.seconds);
  visit("examples_per_second", r.examples_per_second);
  visit("run_dir", r.run_dir);
  visit("for_release", r.for_release);
  visit("not_for_release", r.not_for_release);
  visit("dataset", r.dataset);
  visit("model", r.model);
  visit("parameters", r.parameters);
  visit("backend", r.backend);
}

struct Write {
  Json& j;

  template <class T>
  void operator()(const char* key, const T& value) const {
    j[key] = value;
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) const {
    if (value) j[key] = *value;
  }
  void operator()(const char* key, const std::vector<std::string>& texts) const {
    if (!texts.empty()) j[key] = texts;
  }
  void operator()(const char* key, const std::vector<ErrorBar>& bars) const {
    for (const ErrorBar& b : bars)
      j[key].push_back(
          Json{{"metric", b.name}, {"value", b.value}, {"low", b.low}, {"high", b.high}});
  }
  void metrics(const Metrics& m) const {
    for (std::size_t i = 0; i < m.values.size(); ++i)
      if (const Metric& metric = cudp::metrics(m.kind)[i]; metric.in_result)
        j[metric.key] = m.values[i];
  }
};

/// Function object that reads the fields of a result from JSON, one per call. A field that the file
/// lacks, because an earlier version wrote it, keeps its value. Null stands for a number that is
/// not finite.
struct Read {
  const Json& j;

  template <class T>
  void operator()(const char* key, T& value) const {
    if (j.contains(key)) j.at(key).get_to(value);
  }
  void operator()(const char* key, double& value) const {
    if (!j.contains(key)) return;
    value = j.at(key).is_null() ? std::numeric_limits<double>::infinity() : j.at(key).get<double>();
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) const {
    if (j.contains(key)) value = j.at(key).get<T>();
  }
  void operator()(const char* key, std::vector<ErrorBar>& bars) const {
    if (!j.contains(key)) return;
    for (const Json& b : j.at(key))
      bars.push_back({b.at("metric").get<std::string>(), b.at("value").get<double>(),
                      b.at("low").get<double>(), b.at("high").get<double>()});
  }
  void metrics(Metrics& m) const {
    for (const PredictionKind kind : {PredictionKind::classes, PredictionKind::target})
      if (j.contains(cudp::metrics(kind)[0].key)) read(kind, m);
  }

 private:
  void read(PredictionKind kind, Metrics& m) const {
    m.kind = kind;
    for (const Metric& metric : cudp::metrics(kind)) {
      const auto found = j.find(metric.key);
      m.values.push_back(found == j.end() || found->is_null()
                             ? std::numeric_limits<double>::quiet_NaN()
                             : found->get<double>());
    }
  }
};

}  // namespace

Json to_json(const RunResult& result) {
  Json j = Json::object();
  for_each_field(result, Write{j});
  return j;
}

RunResult result_from_json(const Json& json) {
  RunResult result;
  for_each_field(result, Read{json});
  // Earlier versions, like certificates of format 1, stored the training's numbers as epsilon and
  // delta, and those of the whole run as epsilon_total and delta_total.
  if (json.contains("epsilon_total")) {
    result.training_epsilon = result.epsilon;
    result.training_delta = result.delta;
    const Read read{json};
    read("epsilon_total", result.epsilon);
    read("delta_total", result.delta);
  }
  return result;
}

}  // namespace cudp
