#pragma once
#include <optional>
#include <string>

namespace cudp {

/// Settings of a run's reports: figures of test rows (given or held out), curves, model card,
/// progress file.
struct ReportOptions {
  /// Threshold for two classes: the second class is predicted for a held-out row if its probability
  /// is at least this. If empty, the more probable class is predicted.
  std::optional<double> holdout_threshold;
  /// Metric to draw in curves.png, a name in kSchemaMetrics (data/schema.hpp); empty: the schema's
  /// metric.
  std::string metric;
  std::string license;  ///< licence of the model, for its model card; empty: not stated
  /// File with the run's progress for a monitoring system (run/metrics_file.hpp); empty: none.
  std::string metrics_file;
};

}  // namespace cudp
