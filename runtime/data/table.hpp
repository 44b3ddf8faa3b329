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

/// Collects errors in the rows of a table, to report several of them in one message.
class TableFaults {
 public:
  static constexpr std::size_t kMax = 20;

  explicit TableFaults(std::string file) : file_(std::move(file)) {}

  /// Adds an error. line: line in the file. column: name of the column; empty if the whole row is
  /// wrong. expected, found: texts for the message.
  void add(std::uint64_t line, std::string_view column, std::string_view expected,
           std::string_view found);
  /// Sets a description of what the file probably is instead of a table, judging by its first
  /// bytes, e.g. a spreadsheet. It is reported only if rows have errors, because a valid row may
  /// begin with the same bytes.
  void explain(std::string seems) { seems_ = std::move(seems); }
  /// Adds an error. place: position in the table for the message, such as "row 7". expected, found:
  /// texts for the message.
  void add_at(std::string place, std::string_view expected, std::string_view found);
  bool any() const { return !lines_.empty(); }
  bool full() const { return lines_.size() >= kMax; }
  /// Throws InputError "FILE, line N, column 'NAME': expected ..., found ..."; if several errors
  /// were added, the message has their number and a line like this for each. If the file seems to
  /// be something other than a table, the message states that instead.
  [[noreturn]] void raise() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
  std::string seems_;
};

/// A row of a table, with its cells in the order of the schema's columns.
struct TableRow {
  std::uint64_t line = 0;  ///< number of its first line in the file, from 1
  std::string_view text;   ///< the whole row
  std::span<const std::string_view> cells;
  bool malformed = false;  ///< the row could not be split; every cell counts as missing
};

/// Whether a table's file must have the column to predict, with the class or the number.
enum class LabelColumn {
  required,
  optional  ///< may be absent: its cells are then empty
};

/// Whether a table's file, if it has a header, must have the column that identifies the unit of
/// privacy (e.g. the person).
enum class UnitColumn {
  required,
  optional  ///< may be absent: it is not read
};

/// Whether a table's file, if it has a header, may have columns that the schema does not name, and
/// may lack columns of the schema that are not used as features.
enum class UnlistedColumns {
  as_stated,  ///< exactly the schema's columns
  any  ///< columns of kind ignore or id may be absent; columns unknown to the schema are dropped
};

/// Reads the rows of a table, a text file such as CSV, one by one. The constructor reads the
/// header. It throws InputError if the header does not name the schema's columns, or if the file is
/// not text: binary, or UTF-16.
class TableRows {
 public:
  /// Reads the table's header. faults: receives errors in rows if `malformed` is `refuse`. label,
  /// unit, others: which columns the file may lack or have in addition. reader, schema and faults
  /// must outlive this object.
  TableRows(ByteReader& reader, const TableSchema& schema, TableFaults& faults,
            Malformed malformed = Malformed::refuse, LabelColumn label = LabelColumn::required,
            UnitColumn unit = UnitColumn::required,
            UnlistedColumns others = UnlistedColumns::as_stated);

  /// Returns the names of the columns that the file has but the schema does not name. Their cells
  /// are not read.
  const std::vector<std::string>& dropped() const { return dropped_; }
  /// Returns whether the file has a certain column of the schema. column: index of the column in
  /// the schema.
  bool has(std::size_t column) const { return order_[column] < width_; }

  /// Reads the next row, which is valid until the next call; returns false at the end. A row that
  /// cannot be split into the right number of cells is skipped and added to `faults` or, with
  /// Malformed::missing, returned with empty cells and TableRow::malformed set.
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
  UnlistedColumns others_;
  LineReader lines_;
  CellSplitter splitter_;
  std::size_t label_at_ = 0;  // index of the label among the schema's columns
  std::size_t width_ = 0;     // number of cells of a row in the file
  std::vector<std::string> dropped_;
  bool first_ = true;  // no row has been read yet
  /// Index in the file of each column of the schema; equal to width_ if the file lacks the column.
  std::vector<std::size_t> order_;
  std::vector<std::string_view> cells_;
};

/// Returns how the program recognises that a table's file is compressed: by its first bytes if the
/// table has a header, which is public; otherwise by its name, because the first bytes may be those
/// of a private row.
Compression compression_of(const TableSchema& schema);

/// Returns names of columns as a list for a message: "'age', 'sex' and 3 more".
std::string column_list(std::span<const std::string> names);

/// Calls use(row) for every row of a table file, in order. Throws InputError if the file is not a
/// table with the schema's columns, if a row has too few or too many cells, or if there is no row.
/// reader: the table's file.
void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use);

/// Returns the number of rows of a table file, without reading their cells. reader: the table's
/// file.
std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema);

/// Makes a schema from the header row, with the names of the columns but no kinds. The label is the
/// column named label, class or target, in upper or lower case; if there is none, the last column.
/// reader: the table's file. delimiter: character between cells.
TableSchema schema_from_header(ByteReader& reader, char delimiter);

/// Parses a finite decimal number; nullopt if the text is anything else. decimal: '.' or ','.
std::optional<double> parse_number(std::string_view text, char decimal = '.');

/// Parses the cell of a numeric column: a decimal number, or a date, which is converted to days
/// since 1970-01-01. Returns nullopt if the cell is neither. schema: schema of the table. numeric:
/// kind of the column.
std::optional<double> parse_cell(const TableSchema& schema, const Numeric& numeric,
                                 std::string_view cell);

/// Returns the name of the class in a label's cell: the cell without the suffix label.strip_suffix.
std::string_view class_text(const Label& label, std::string_view cell);

/// Counts how often each word occurs in the table's text column. The result is exact, so it is not
/// differentially private. reader: the table's file.
WordCounter count_words(ByteReader& reader, const TableSchema& schema);

}  // namespace cudp
