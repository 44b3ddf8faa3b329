#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/reporter.hpp"

namespace cudp {

/// Numbers over the columns, NaN where there is none. `deviations` of single runs, empty for
/// numbers that were read off elsewhere.
struct ResultRow {
  std::string name;
  std::vector<double> values;
  std::vector<double> deviations;
  int runs = 0;
  bool drawn = true;  ///< stands in the picture too
};

/// A part of a table: one data set and model, say.
struct TableGroup {
  std::string name;
  std::vector<ResultRow> measured;
  std::vector<ResultRow> published;  ///< the paper's numbers, or others to stand beside
  std::vector<double> columns = {};  ///< where the group has its own; empty: the table's
};

/// A table or figure of a paper, as it came out here.
struct ReproducedTable {
  std::string title;
  std::string column_label;  ///< "epsilon"
  std::vector<double> columns;
  std::string value_label;  ///< "test accuracy (%)"
  std::vector<TableGroup> groups;
  std::vector<std::string> notes;  ///< settings, and what differs from the paper
  bool log_values = false;         ///< the picture's other axis; that of the columns always is

  const std::vector<double>& columns_of(const TableGroup& group) const {
    return group.columns.empty() ? columns : group.columns;
  }
};

struct ReproduceOptions {
  std::string data_dir = "data";
  bool quick = false;  ///< a subset that fits 10 minutes on 2 cores
  int seeds = 0;       ///< repetitions; 0: the reproduction's own number
  int threads = 0;
  std::vector<double> epsilons = {};  ///< columns, of a table that lets one choose; empty: its own
  /// The file that keeps finished trainings, so that an interrupted table goes on; empty: none.
  std::filesystem::path kept = {};
  /// Settings (TOML) in place of a table's own, for tests on other data; no flag sets it.
  std::string overrides = {};
};

/// One entry a table; `cudp reproduce NAME` runs it.
struct Reproduction {
  std::string name;
  std::string what;
  std::function<ReproducedTable(const ReproduceOptions& options, Reporter& reporter)> run;
  bool takes_epsilons = false;  ///< looks at ReproduceOptions::epsilons
};
const std::vector<Reproduction>& reproductions();

/// Rows of "mean +-sd", each group with the numbers to compare with below it.
std::string table_text(const ReproducedTable& table);
nlohmann::ordered_json table_json(const ReproducedTable& table);

/// Draws one plot for each group with gnuplot. Returns false where that is missing or fails.
bool draw_table(const ReproducedTable& table, const std::filesystem::path& picture);

/// Mean and sample standard deviation.
struct MeanAndDeviation {
  double mean = 0.0;
  double deviation = 0.0;
};
MeanAndDeviation mean_and_deviation(const std::vector<double>& values);

}  // namespace cudp
