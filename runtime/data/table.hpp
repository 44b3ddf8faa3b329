#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/malformed.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/csv.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// Collects faults of a table's rows, which are reported together.
class TableFaults {
 public:
  static constexpr std::size_t kMax = 20;

  explicit TableFaults(std::string file) : file_(std::move(file)) {}

  /// Adds a fault. column: empty if the whole row is at fault.
  void add(std::uint64_t line, std::string_view column, std::string_view expected,
           std::string_view found);
  /// Adds a fault at a position such as "row 7".
  void add_at(std::string place, std::string_view expected, std::string_view found);
  bool any() const { return !lines_.empty(); }
  bool full() const { return lines_.size() >= kMax; }
  /// Throws InputError "FILE, line N, column 'NAME': expected ..., found ..."; with several faults,
  /// their number and a line like this for each.
  [[noreturn]] void raise() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

/// A row of a table, with its cells in the order of the schema's columns.
struct TableRow {
  std::uint64_t line = 0;  ///< number of its first line in the file, from 1
  std::string_view text;   ///< the whole row
  std::span<const std::string_view> cells;
  bool malformed = false;  ///< every cell counts as missing
};

/// Rule for the label's column in a file.
enum class LabelColumn {
  required,
  optional  ///< may be absent: its cells are then empty
};

/// Rule for the column of the schema's unit of privacy in a file with a header.
enum class UnitColumn {
  required,
  optional  ///< may be absent: it is not read
};

/// Whether a file with a header may have columns that the schema does not name, or lack columns
/// that are not used.
enum class OtherColumns {
  as_stated,  ///< exactly the schema's columns
  any  ///< columns of kind ignore or id may be absent; columns unknown to the schema are dropped
};

/// Reads the rows of a table one by one. The constructor reads the header. It throws InputError if
/// the header does not name the schema's columns, or if the file is not a table at all: binary, or
/// UTF-16.
class TableRows {
 public:
  /// faults: collects the faults of rows if `malformed` is refuse. reader, schema and faults must
  /// outlive this object.
  TableRows(ByteReader& reader, const TableSchema& schema, TableFaults& faults,
            Malformed malformed = Malformed::refuse, LabelColumn label = LabelColumn::required,
            UnitColumn unit = UnitColumn::required, OtherColumns others = OtherColumns::as_stated);

  /// Names of columns in the file that the schema lacks.
  const std::vector<std::string>& dropped() const { return dropped_; }
  /// Returns whether the file has the schema's column at this index.
  bool has(std::size_t column) const { return order_[column] < width_; }

  /// Reads the next row that can be split into its cells; returns false at the end. The row is
  /// valid until the next call.
  bool next(TableRow& row);

 private:
  void read_header();
  bool may_lack(std::size_t column) const;
  std::size_t width(std::size_t found);

  const TableSchema& schema_;
  TableFaults& faults_;
  Malformed malformed_;
  LabelColumn label_;
  UnitColumn unit_;
  OtherColumns others_;
  LineReader lines_;
  CellSplitter splitter_;
  std::size_t label_at_ = 0;  // index of the label among the schema's columns
  std::size_t width_ = 0;     // number of cells of a row in the file
  std::vector<std::string> dropped_;
  bool first_ = true;  // no row has been read yet
  /// Index in the file of each of the schema's columns; width_ if the file lacks it.
  std::vector<std::size_t> order_;
  std::vector<std::string_view> cells_;
};

/// Lists names of columns for a message: "'age', 'sex' and 3 more".
std::string column_list(std::span<const std::string> names);

/// Calls `use` for every row. Throws InputError on what TableRows refuses, on rows with too few or
/// too many cells, or if there is no row.
void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use);

/// Counts the rows, without reading their cells.
std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema);

/// Makes a schema that knows only the names in the header row. The label is the column named label,
/// class or target, in upper or lower case; if there is none, the last column.
TableSchema schema_from_header(ByteReader& reader, char delimiter);

/// Parses a text that is a finite decimal number and nothing else. decimal: '.' or ','.
std::optional<double> parse_number(std::string_view text, char decimal = '.');

/// Parses the number of a cell: a decimal number, or a date in days.
std::optional<double> parse_cell(const TableSchema& schema, const Numeric& numeric,
                                 std::string_view cell);

/// Returns the text that names the class, without the suffix to be removed.
std::string_view class_text(const Label& label, std::string_view cell);

/// Counts the words of the texts. The result is not private; see WordCounter.
WordCounter count_words(ByteReader& reader, const TableSchema& schema);

}  // namespace cudp
