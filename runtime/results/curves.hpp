#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Returns the key (name in files) of the metric to draw over epochs. rows: the run's lines of
/// metrics. stated: the metric that the user or the schema states, or empty. If it is empty, the
/// metric is accuracy; but if the test rows are public and at least four fifths of them are of one
/// class, it is AUC, or balanced accuracy if AUC is undefined. For private test rows that choice
/// would reveal something about the rows.
std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public);

/// Starts to draw a PNG file with two curves over epochs: a test metric, and epsilon. Returns
/// before it is drawn; `pictures` keeps track of it. rows: lines of the metrics file. metric: key
/// (name in files) of the metric; if it was not measured, only epsilon is drawn. For regression
/// models RMSE is drawn. mode: permissions of the file. Returns false if there are no rows.
bool start_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                  const std::filesystem::path& picture, const std::string& metric, unsigned mode,
                  Pictures& pictures);
/// Draws a PNG file with two curves over epochs, a test metric and epsilon, and waits until it is
/// drawn. rows, title, picture: lines of the metrics file, heading and path. metric: key (name in
/// files) of the metric. mode: permissions of the file. Returns false if there are no rows, or if
/// the program gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, const std::string& metric = "test_accuracy",
                 unsigned mode = 0644);

}  // namespace cudp
