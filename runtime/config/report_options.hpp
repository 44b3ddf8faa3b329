#pragma once
#include <optional>
#include <string>

namespace cudp {

/// Settings of the reports that a run writes: metrics on test rows (given or held out), plots,
/// model card, progress file.
struct ReportOptions {
  /// Threshold for models with two classes: the second class is predicted for a held-out row if its
  /// predicted probability is at least this. If empty, the more probable class is predicted.
  std::optional<double> holdout_threshold;
  /// Metric to draw in curves.png, one of the names in kSchemaMetrics (data/schema.hpp); empty: the
  /// metric that the data set's schema states.
  std::string metric;
  std::string license;  ///< licence of the model, for its model card; empty: not stated
  /// Path of a file with the run's progress, which a monitoring system reads
  /// (run/metrics_file.hpp); empty: no such file.
  std::string metrics_file;
};

}  // namespace cudp
