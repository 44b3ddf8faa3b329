#include "runtime/results/metrics.hpp"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

std::string four_digits(double value) { return fmt::format("{:.4f}", value); }
std::string if_defined(double value) {
  return std::isnan(value) ? "not defined" : four_digits(value);
}

constexpr Metric kMetrics[] = {
    {"test_accuracy", "test accuracy", percent_text, [](const Evaluation& e) { return e.accuracy; },
     true},
    {"test_loss", "test loss", four_digits, [](const Evaluation& e) { return e.mean_loss; }, false},
    {"majority_baseline", "majority baseline", percent_text,
     [](const Evaluation& e) { return e.majority_baseline; }, true},
    {"log_loss_of_class_shares", "log loss of class shares", if_defined,
     [](const Evaluation& e) { return e.log_loss_of_class_shares; }, false},
    {"balanced_accuracy", "balanced accuracy", percent_text,
     [](const Evaluation& e) { return e.balanced_accuracy; }, true},
    {"auc", "AUC", if_defined, [](const Evaluation& e) { return e.auc; }, true},
    {"calibration_error", "calibration error", if_defined,
     [](const Evaluation& e) { return e.calibration_error; }, false},
    {"average_precision", "average precision", if_defined,
     [](const Evaluation& e) { return e.average_precision; }, false},
    {"brier_score", "Brier score", if_defined, [](const Evaluation& e) { return e.brier_score; },
     false},
    {"log_loss", "log loss", if_defined, [](const Evaluation& e) { return e.log_loss; }, false},
};

std::string six_digits(double value) {
  return std::isnan(value) ? "not defined" : fmt::format("{:.6g}", value);
}

constexpr Metric kTargetMetrics[] = {
    {"rmse", "RMSE", six_digits, [](const Evaluation& e) { return e.target.rmse; }, true},
    {"mae", "mean absolute error", six_digits, [](const Evaluation& e) { return e.target.mae; },
     true},
    {"r2", "R2", if_defined, [](const Evaluation& e) { return e.target.r2; }, true},
    {"mean_baseline_rmse", "RMSE of the mean", six_digits,
     [](const Evaluation& e) { return e.target.mean_baseline_rmse; }, true},
};

/// Returns a number from JSON; NaN for null, which stands for a number that is not finite.
double number(const nlohmann::json& j) {
  return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
}

/// Reads the metrics of one line of metrics.jsonl. A metric that is missing, because an earlier
/// version wrote the line, is NaN.
Metrics decode_values(const nlohmann::json& row) {
  Metrics m;
  for (const PredictionKind kind : {PredictionKind::classes, PredictionKind::target}) {
    if (!row.contains(metrics(kind)[0].key)) continue;
    m.kind = kind;
    for (const Metric& metric : metrics(kind))
      m.values.push_back(row.contains(metric.key) ? number(row.at(metric.key))
                                                  : std::numeric_limits<double>::quiet_NaN());
  }
  return m;
}

}  // namespace

std::string percent_text(double share) {
  return std::isnan(share) ? "not defined" : fmt::format("{:.2f} %", 100.0 * share);
}

std::span<const Metric> metrics(PredictionKind kind) {
  if (kind == PredictionKind::target) return kTargetMetrics;
  return kMetrics;
}

PredictionKind prediction_kind(const Evaluation& evaluation) {
  return has_target(evaluation.loss) ? PredictionKind::target : PredictionKind::classes;
}

std::optional<double> Metrics::first() const {
  if (values.empty()) return std::nullopt;
  return values.front();
}

std::optional<double> Metrics::accuracy() const {
  return kind == PredictionKind::classes ? first() : std::nullopt;
}

std::optional<double> Metrics::of(std::string_view key) const {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (key == metrics(kind)[i].key) return values[i];
  return std::nullopt;
}

Metrics metrics_of(const Evaluation& evaluation) {
  Metrics m{.values = {}, .kind = prediction_kind(evaluation)};
  for (const Metric& metric : metrics(m.kind)) m.values.push_back(metric.value(evaluation));
  return m;
}

std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows) {
  for (MetricsRow& r : rows) r.test = {};
  return rows;
}

std::string encode_metrics(const std::vector<MetricsRow>& rows) {
  std::string text;
  for (const MetricsRow& r : rows) {
    nlohmann::ordered_json j{{"epoch", r.epoch}, {"step", r.step}, {"epsilon", r.epsilon}};
    if (r.training_epsilon) j["training_epsilon"] = *r.training_epsilon;
    j["learning_rate"] = r.learning_rate;
    for (std::size_t i = 0; i < r.test.values.size(); ++i)
      j[metrics(r.test.kind)[i].key] = r.test.values[i];
    text += j.dump() + "\n";
  }
  return text;
}

std::vector<MetricsRow> decode_metrics(const std::string& text) {
  std::vector<MetricsRow> rows;
  try {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const auto j = nlohmann::json::parse(text.substr(begin, end - begin));
      rows.push_back({number(j.at("epoch")), j.at("step").get<std::uint64_t>(),
                      number(j.at("epsilon")), number(j.at("learning_rate")), decode_values(j),
                      j.contains("training_epsilon")
                          ? std::optional(number(j.at("training_epsilon")))
                          : std::nullopt});
      if (end == std::string::npos) break;
      begin = end + 1;
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(std::string("metrics: ") + e.what());
  }
  return rows;
}

}  // namespace cudp
