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

/// A number of an evaluation. A row of metrics() makes it known everywhere.
struct Metric {
  const char* key;   ///< its name in files and JSON: "test_accuracy"
  const char* name;  ///< for people: "test accuracy"
  std::string (*text)(double value);
  double (*value)(const Evaluation& evaluation);
  bool in_result;  ///< stands in the result of a training, too
};

/// A share as people read it, "97.05 %"; "not defined" of NaN.
std::string percent_text(double share);

/// What a model says: one of several classes, or a number.
enum class Says { classes, target };

/// All metrics of a kind of model; accuracy is the first of classes, RMSE of targets.
std::span<const Metric> metrics(Says says);
Says says_of(const Evaluation& evaluation);

/// The values of all metrics on a test set.
struct Metrics {
  std::vector<double> values;  ///< in the order of metrics(says); empty where there is no test set
  Says says = Says::classes;

  bool empty() const { return values.empty(); }
  /// The first of them; empty where there is no test set.
  std::optional<double> first() const;
  /// Empty where there is no test set, or no class.
  std::optional<double> accuracy() const;
  /// The value of the metric with this key; empty where there is no test set.
  std::optional<double> of(std::string_view key) const;
};

Metrics metrics_of(const Evaluation& evaluation);

/// A point of a run: from the released model so far, the test set and the ledger. No clock: the
/// time of a step tells how many private examples were in it.
struct MetricsRow {
  double epoch = 0.0;
  std::uint64_t step = 0;
  /// The promise for all that was released by then, and for the figures of held-out rows, which are
  /// released at the end: the larger of what training has spent and of the figures' whole budget.
  double epsilon = 0.0;
  double learning_rate = 0.0;
  Metrics test = {};
  std::optional<double> training_epsilon = {};  ///< spent by then; only where rows are held out

  double spent_by_training() const { return training_epsilon.value_or(epsilon); }
};

/// The rows without what was measured on the test set.
std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows);

/// One line of JSON a row.
std::string encode_metrics(const std::vector<MetricsRow>& rows);
/// Throws Error on anything that encode_metrics did not write.
std::vector<MetricsRow> decode_metrics(const std::string& text);

}  // namespace cudp
