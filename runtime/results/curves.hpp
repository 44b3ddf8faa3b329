#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Returns the key (name in files) of the test metric whose curve is drawn. It is the metric that
/// the user or the schema states (`stated`). If `stated` is empty, it is accuracy, with one
/// exception: if the test rows are public and at least four fifths of them are of one class, it is
/// AUC (balanced accuracy if AUC is undefined). There is no such exception for private test rows,
/// because the choice would reveal something about them. rows: the run's lines of metrics.
std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public);

/// Starts gnuplot, which draws a PNG file with two curves over epochs, a test metric and epsilon,
/// while the program continues; pictures.finish() waits for it. rows: lines of the metrics file.
/// metric: key (name in files) of the metric; if it was not measured, only epsilon is drawn. For
/// regression models RMSE is drawn. mode: permissions of the file. Returns false if there are no
/// rows.
bool start_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                  const std::filesystem::path& picture, const std::string& metric, unsigned mode,
                  Pictures& pictures);

}  // namespace cudp
