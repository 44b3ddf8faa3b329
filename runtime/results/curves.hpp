#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// The key of the metric that a picture of these rows shows. stated: by the user or the schema, a
/// name of kSchemaMetrics (data/schema.hpp), or empty. Accuracy tells little where one class has
/// most rows: if nothing is stated, and a class has four fifths of the test rows or more, it is
/// AUC, or balanced accuracy where that is not defined; but of public test rows alone, since which
/// it is tells of the rows.
std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public);

/// Draws a metric, by its key, or the RMSE of a target, where it was measured, and epsilon over
/// epochs as a PNG, by gnuplot. Returns false, having drawn nothing, where gnuplot is missing or
/// fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, const std::string& metric = "test_accuracy",
                 unsigned mode = 0644);

}  // namespace cudp
