#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/mean.hpp"
#include "runtime/base/reporter.hpp"

namespace cudp {

/// One row of a table: a number per column, NaN if there is none. `deviations` are the standard
/// deviations of single runs; empty for numbers that were not measured here.
struct ResultRow {
  std::string name;
  std::vector<double> values;
  std::vector<double> deviations;
  int runs = 0;
  bool drawn = true;  ///< also shown in the picture
  bool published = false;
  std::string of = {};  ///< name of the measured row that a published one is to be compared with
};

/// Returns a published row. of: name of the measured row that it is to be compared with.
inline ResultRow published_row(std::string name, std::string of, std::vector<double> values = {}) {
  return {.name = std::move(name),
          .values = std::move(values),
          .deviations = {},
          .published = true,
          .of = std::move(of)};
}

/// A part of a table, e.g. for one data set and model.
struct TableGroup {
  std::string name;
  std::vector<ResultRow> measured;
  std::vector<ResultRow> published;  ///< the paper's numbers, or others to compare with
  std::vector<double> columns = {};  ///< the group's own columns; empty: the table's
};

/// A reproduced table or figure of a paper.
struct ReproducedTable {
  std::string title;
  std::string column_label;  ///< "epsilon"
  std::vector<double> columns;
  std::string value_label;  ///< "test accuracy (%)"
  std::vector<TableGroup> groups;
  std::vector<std::string> notes;  ///< settings, and differences from the paper
  bool log_values = false;  ///< logarithmic value axis; the column axis is always logarithmic
  std::string picture_shows = {};  ///< value_label of the drawn rows alone, if it differs

  const std::string& picture_label() const {
    return picture_shows.empty() ? value_label : picture_shows;
  }

  const std::vector<double>& columns_of(const TableGroup& group) const {
    return group.columns.empty() ? columns : group.columns;
  }
};

struct ReproduceOptions {
  std::string data_dir = "data";
  bool quick = false;  ///< a subset that fits 10 minutes on 2 cores
  int seeds = 0;       ///< repetitions; 0: the reproduction's own number
  int threads = 0;
  std::vector<double> epsilons = {};  ///< columns, if `takes_epsilons`; empty: the table's own
  /// File of finished trainings, from which an interrupted table resumes; empty: none.
  std::filesystem::path results_file = {};
  /// Settings (TOML) in place of a table's own, for tests on other data; no flag sets it.
  std::string overrides = {};
};

/// A table or figure that `cudp reproduce NAME` runs.
struct Reproduction {
  std::string name;
  std::string what;
  std::function<ReproducedTable(const ReproduceOptions& options, Reporter& reporter)> run;
  bool takes_epsilons = false;  ///< uses ReproduceOptions::epsilons
};
const std::vector<Reproduction>& reproductions();

/// Returns rows of "mean +-sd". Below each group are its published numbers.
std::string table_text(const ReproducedTable& table);
nlohmann::ordered_json table_json(const ReproducedTable& table);
/// Reads what table_json() makes. Throws nlohmann::json::exception on anything else.
ReproducedTable table_from_json(const nlohmann::ordered_json& json);

/// Draws one plot per group with gnuplot, and a legend beside them. A table with a single column is
/// drawn as dots, a line per method. Returns false if gnuplot is missing or fails.
bool draw_table(const ReproducedTable& table, const std::filesystem::path& picture);

}  // namespace cudp
