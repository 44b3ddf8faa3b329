#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Returns the key of the metric that the picture of these rows shows. stated: the metric that the
/// user or the schema names, one of kSchemaMetrics (data/schema.hpp), or empty.
/// If nothing is stated it is accuracy, unless accuracy says little: if at least four fifths of the
/// test rows are of one class, it is AUC, or balanced accuracy if AUC is not defined. This applies
/// only to public test rows, because the choice reveals something about the rows.
std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public);

/// Starts to draw a metric and epsilon over epochs as a PNG. The metric is the one with the key
/// `metric`, or the RMSE for a target; it is left out if it was not measured. Returns false if
/// there are no rows.
bool start_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                  const std::filesystem::path& picture, const std::string& metric, unsigned mode,
                  Pictures& pictures);
/// Draws the same picture, and waits for it. Returns false also if gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, const std::string& metric = "test_accuracy",
                 unsigned mode = 0644);

}  // namespace cudp
