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

/// A metric that is computed from an Evaluation. Every entry in the table of metrics() appears in
/// files, tables and results.
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

/// Returns all metrics for a kind of prediction; the first one is accuracy, or RMSE.
std::span<const Metric> metrics(PredictionKind kind);
PredictionKind prediction_kind(const Evaluation& evaluation);

/// Values of all metrics of a model on a test set; empty if there is none.
struct Metrics {
  std::vector<double> values;  ///< in the order of metrics(kind); empty if there is no test set
  PredictionKind kind = PredictionKind::classes;

  bool empty() const { return values.empty(); }
  /// Returns the first metric's value (accuracy, or RMSE); nullopt if there is no test set.
  std::optional<double> first() const;
  /// Returns the accuracy; nullopt if there is no test set, or for a regression model.
  std::optional<double> accuracy() const;
  /// Returns the value of the metric with this key; nullopt if it was not measured.
  std::optional<double> of(std::string_view key) const;
};

Metrics metrics_of(const Evaluation& evaluation);

/// A line of metrics.jsonl: metrics of the model at one step of a run, and the privacy spent by
/// then. It has no time, because the duration of a step reveals how many private examples were in
/// its batch.
struct MetricsRow {
  double epoch = 0.0;
  std::uint64_t step = 0;
  /// Epsilon guaranteed for everything released up to this step and for the figures of held-out
  /// rows, which are released at the end: the larger of the training's epsilon so far and the
  /// figures' whole budget. In a training that a tuning released: that of the whole tuning.
  double epsilon = 0.0;
  double learning_rate = 0.0;
  Metrics test = {};
  /// Epsilon of the training up to this step; set only if rows are held out, or by a tuning.
  std::optional<double> training_epsilon = {};

  double spent_by_training() const { return training_epsilon.value_or(epsilon); }
};

/// Returns the rows without the numbers measured on the test set.
std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows);

/// Returns the rows as text, one line of JSON per row.
std::string encode_metrics(const std::vector<MetricsRow>& rows);
/// Reads the text that encode_metrics() writes. Throws Error on any other text.
std::vector<MetricsRow> decode_metrics(const std::string& text);

}  // namespace cudp
