#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/results/result.hpp"

namespace cudp {

/// A run of a sweep, finished or not.
struct SweptRun {
  std::string folder;  ///< path, relative to the sweep's folder
  /// "finished", "refused" or "missing"; in the part that may be published also "not for release".
  std::string status;
  std::optional<RunResult> result;
};

/// One combination of settings in the table of a sweep's results, and its runs.
struct SweptCell {
  std::vector<std::string> settings;  ///< values, in the order of SweepTable::keys
  std::vector<SweptRun> runs;
};

/// Table of the results of a sweep: its combinations of settings, each with the results of its
/// runs.
struct SweepTable {
  std::vector<std::string> keys;  ///< settings of which the sweep has several values
  std::vector<SweptCell> cells;
  /// Epsilon and delta of all runs of the sweep together; empty if they have no bound, or if a run
  /// has no privacy.
  std::optional<double> epsilon, delta;
};

/// A metric by which the runs of a sweep are compared (such as test accuracy): its names, and a
/// function that formats its values. It is a metric of the test rows, or the first noisy metric of
/// held-out rows.
struct SweptFigure {
  std::string key;
  std::string name;
  std::string (*text)(double value);
};

/// Returns the part of a table of results that may be published: without durations, without the
/// metrics of runs whose test rows are not public, and without any result of runs that must not be
/// published.
SweepTable released_part(SweepTable table);

/// Returns the metrics by which the runs of the table can be compared, such as test accuracy and
/// AUC; empty if no run has one. The first of them is the one that rows_of() and draw_sweep() show.
std::vector<SweptFigure> figures_of(const SweepTable& table);

/// Returns a run's value of the metric with this key (such as "test_accuracy"); nullopt if the run
/// does not have this metric.
std::optional<double> figure_of(const RunResult& result, const std::string& key);

/// Returns rows for the user, one per combination of settings: the settings, "mean +- deviation" of
/// a metric over the runs with these settings, the number of these runs, and how many of them have
/// no result in the table, with their status. The metric is the first one of figures_of().
std::vector<std::pair<std::string, std::string>> rows_of(const SweepTable& table);

std::string cells_csv(const SweepTable& table);  ///< a line per cell, with mean and deviation
std::string runs_csv(const SweepTable& table);   ///< a line per run
nlohmann::ordered_json to_json(const SweepTable& table);

/// Draws the first metric of figures_of(), e.g. test accuracy, with error bars, as a PNG file. The
/// horizontal axis is the first setting of table.keys whose values are all numbers or, if there is
/// none, the first setting of table.keys. mode: permissions of the file. Returns false if there is
/// nothing to draw, or if the program gnuplot is missing.
bool draw_sweep(const SweepTable& table, const std::filesystem::path& picture, unsigned mode);

}  // namespace cudp
