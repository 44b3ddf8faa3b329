#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Returns the key of the metric to draw over epochs. stated: the metric that the user or the
/// schema names, one of kSchemaMetrics (data/schema.hpp), or empty. If empty, the metric is
/// accuracy, unless at least four fifths of the test rows are of one class: then it is AUC, or
/// balanced accuracy if AUC is undefined. This exception applies only to public test rows, because
/// it reveals something about the rows.
std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public);

/// Starts to draw a PNG with a test metric and epsilon over epochs. rows: lines of the metrics
/// file. metric: key of the metric, left out if it was not measured; for regression models RMSE is
/// drawn. mode: permissions of the file. Returns false if there are no rows.
bool start_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                  const std::filesystem::path& picture, const std::string& metric, unsigned mode,
                  Pictures& pictures);
/// As start_curves(), but waits until the PNG is drawn. Returns false if there are no rows, or if
/// gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, const std::string& metric = "test_accuracy",
                 unsigned mode = 0644);

}  // namespace cudp
