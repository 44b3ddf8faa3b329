#pragma once
#include <optional>
#include <string>

namespace cudp {

/// What a run says of its test rows, of which held-out rows are some.
struct ReportOptions {
  /// Of two classes: the second is predicted for a held-out row if its probability is at least
  /// this; empty: if it is the more probable one.
  std::optional<double> holdout_threshold;
  /// What curves.png shows, a name of kSchemaMetrics (data/schema.hpp); empty: the schema's.
  std::string metric;
};

}  // namespace cudp
