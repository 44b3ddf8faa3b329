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
  std::string status;  ///< finished, refused or missing
  std::optional<RunResult> result;
};

/// The runs of one combination of settings.
struct SweptCell {
  std::vector<std::string> settings;  ///< values, in the order of SweepTable::keys
  std::vector<SweptRun> runs;
};

/// Results of a sweep.
struct SweepTable {
  std::vector<std::string> keys;  ///< settings of which the sweep has several values
  std::vector<SweptCell> cells;
  /// Privacy of all runs together; empty if there is no bound or no privacy.
  std::optional<double> epsilon, delta;
};

/// Figure of merit that a table shows: a metric of the test rows, or the first noisy figure of
/// held-out rows.
struct SweptFigure {
  std::string key;
  std::string name;
  std::string (*text)(double value);
};

/// Returns the table for release/: without times, without the metrics of runs whose test rows are
/// not public, and without any result of runs that are not for release.
SweepTable released_part(SweepTable table);

/// Returns the figures of merit of the table's runs; empty if no run has one. The first is the one
/// that rows_of() and draw_sweep() show.
std::vector<SweptFigure> figures_of(const SweepTable& table);

/// Returns the value of a figure of a run; nullopt if it has none.
std::optional<double> figure_of(const RunResult& result, const std::string& key);

/// Returns a row per combination of settings: its settings, and "mean +- deviation" of the first
/// figure.
std::vector<std::pair<std::string, std::string>> rows_of(const SweepTable& table);

std::string cells_csv(const SweepTable& table);  ///< a line per cell, with mean and deviation
std::string runs_csv(const SweepTable& table);   ///< a line per run
nlohmann::ordered_json to_json(const SweepTable& table);

/// Draws the first figure with error bars, over the first setting with several numbers. Returns
/// false if there is nothing to draw, or no gnuplot. mode: permissions.
bool draw_sweep(const SweepTable& table, const std::filesystem::path& picture, unsigned mode);

}  // namespace cudp
