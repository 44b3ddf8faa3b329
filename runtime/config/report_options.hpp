#pragma once
#include <optional>
#include <string>

namespace cudp {

/// Settings of the figures on test rows; held-out rows are among them.
struct ReportOptions {
  /// Threshold for two classes: the second class is predicted for a held-out row if its probability
  /// is at least this. If empty, the more probable class is predicted.
  std::optional<double> holdout_threshold;
  /// Metric in curves.png, a name in kSchemaMetrics (data/schema.hpp); empty: the schema's metric.
  std::string metric;
  std::string license;  ///< licence of the model in the front matter of its card; empty: not stated
};

}  // namespace cudp
