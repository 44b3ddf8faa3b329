#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/results/evaluation.hpp"

namespace cudp {

/// A metric such as accuracy: its names, and functions that compute it from an Evaluation and
/// format it. Every metric that metrics() lists appears in metrics files, in tables and in results.
struct Metric {
  const char* key;   ///< name in files and JSON: "test_accuracy"
  const char* name;  ///< name for people: "test accuracy"
  std::string (*text)(double value);
  double (*value)(const Evaluation& evaluation);
  bool in_result;  ///< whether it is in the result of a training
};

/// Returns a fraction as a percentage, e.g. "97.05 %"; "not defined" for NaN.
std::string percent_text(double share);

/// Kind of prediction of a model: one of several classes, or a number.
enum class PredictionKind { classes, target };

/// Returns the list of all metrics for models that predict classes, or for models that predict a
/// number; the first one is accuracy, or RMSE.
std::span<const Metric> metrics(PredictionKind kind);
PredictionKind prediction_kind(const Evaluation& evaluation);

/// Values of all metrics of a model on a test set. Empty if there is no test set.
struct Metrics {
  std::vector<double> values;  ///< in the order of metrics(kind); empty if there is no test set
  PredictionKind kind = PredictionKind::classes;

  bool empty() const { return values.empty(); }
  /// Returns the value of the first metric in metrics(): accuracy, or RMSE for a regression model;
  /// nullopt if there is no test set.
  std::optional<double> first() const;
  /// Returns the accuracy; nullopt if there is no test set, or for a regression model.
  std::optional<double> accuracy() const;
  /// Returns the value of the metric with this key (name in files, e.g. "test_accuracy"); nullopt
  /// if it was not measured.
  std::optional<double> of(std::string_view key) const;
};

Metrics metrics_of(const Evaluation& evaluation);

/// A line of metrics.jsonl: metrics of the model at one step of a run, and the privacy spent by
/// then. It has no time, because the duration of a step reveals how many private examples were in
/// its batch.
struct MetricsRow {
  double epoch = 0.0;
  std::uint64_t step = 0;
  /// Epsilon guaranteed for everything that has been released up to this step. If rows are held
  /// out, their noisy test metrics, which are released at the end, are included: the value is the
  /// larger of the training's epsilon so far and the budget of these metrics. For a training that
  /// was chosen by `cudp tune`: epsilon of the whole tuning.
  double epsilon = 0.0;
  double learning_rate = 0.0;
  Metrics test = {};
  /// Epsilon of the training alone, up to this step. Set only if `epsilon` covers more: if rows are
  /// held out, or if the training was chosen by `cudp tune`.
  std::optional<double> training_epsilon = {};

  double spent_by_training() const { return training_epsilon.value_or(epsilon); }
};

/// Returns the lines of metrics without the metrics that were measured on the test set.
std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows);

/// Returns the lines of metrics as the text of a metrics file, one line of JSON for each.
std::string encode_metrics(const std::vector<MetricsRow>& rows);
/// Parses the text of a metrics file, as encode_metrics() writes it. Throws Error if the text has
/// another form.
std::vector<MetricsRow> decode_metrics(const std::string& text);

}  // namespace cudp
