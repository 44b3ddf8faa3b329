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

/// Faults of a table's rows, told together.
class TableFaults {
 public:
  static constexpr std::size_t kMax = 20;

  explicit TableFaults(std::string file) : file_(std::move(file)) {}

  /// column: empty where the whole row is at fault.
  void add(std::uint64_t line, std::string_view column, std::string_view expected,
           std::string_view found);
  /// place: "row 7" and the like.
  void add_at(std::string place, std::string_view expected, std::string_view found);
  bool any() const { return !lines_.empty(); }
  bool full() const { return lines_.size() >= kMax; }
  /// Throws InputError "FILE, line N, column 'NAME': expected ..., found ...", or how many there
  /// are and a line like this for each.
  [[noreturn]] void raise() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

/// One row of a table, its cells in the order of the schema's columns.
struct TableRow {
  std::uint64_t line = 0;  ///< its first, in the file, from 1
  std::string_view text;   ///< all of it
  std::span<const std::string_view> cells;
  bool malformed = false;  ///< every cell counts as missing
};

/// The label's column in a file.
enum class LabelColumn {
  required,
  optional  ///< may be absent: its cells are empty then
};

/// The column of the schema's unit of privacy in a file with a header.
enum class UnitColumn {
  required,
  optional  ///< may be absent: it is not looked at
};

/// The other columns of a file with a header.
enum class OtherColumns {
  as_stated,  ///< exactly the schema's
  any         ///< those of kind ignore or id may be absent; columns that it lacks are dropped
};

/// The rows of a table one by one. The constructor reads the header and throws InputError where it
/// does not name the schema's columns, or where the file is no table at all: binary, or UTF-16.
class TableRows {
 public:
  /// faults: takes those of rows, where malformed is refuse. reader, schema and faults outlive
  /// this.
  TableRows(ByteReader& reader, const TableSchema& schema, TableFaults& faults,
            Malformed malformed = Malformed::refuse, LabelColumn label = LabelColumn::required,
            UnitColumn unit = UnitColumn::required, OtherColumns others = OtherColumns::as_stated);

  /// Names of the file's columns that the schema lacks.
  const std::vector<std::string>& dropped() const { return dropped_; }
  /// Whether the file has the schema's column at this index.
  bool has(std::size_t column) const { return order_[column] < width_; }

  /// The next row that can be split into its cells, valid until the next call; false at the end.
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
  std::size_t label_at_ = 0;  // among the schema's columns
  std::size_t width_ = 0;     // cells of a row
  std::vector<std::string> dropped_;
  bool first_ = true;  // no row has been read yet
  /// Where the file has each of the schema's columns; width_ where it does not.
  std::vector<std::size_t> order_;
  std::vector<std::string_view> cells_;
};

/// "'age', 'sex' and 3 more": columns' names, as a message has them.
std::string column_list(std::span<const std::string> names);

/// Calls `use` for every row. Throws InputError on what TableRows refuses, on rows with too few or
/// too many cells, or no row at all.
void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use);

/// How many rows there are, without looking into their cells.
std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema);

/// A schema that knows only the names in the header row. The label is the column named label, class
/// or target, in any case, and failing that the last.
TableSchema schema_from_header(ByteReader& reader, char delimiter);

/// A finite decimal number that is the whole text. decimal: '.' or ','.
std::optional<double> parse_number(std::string_view text, char decimal = '.');

/// The number of a cell: decimal, or of a date in days.
std::optional<double> parse_cell(const TableSchema& schema, const Numeric& numeric,
                                 std::string_view cell);

/// The text that names the class, without the suffix that is to be stripped.
std::string_view class_text(const Label& label, std::string_view cell);

/// Counts the words of the texts. Not private; see WordCounter.
WordCounter count_words(ByteReader& reader, const TableSchema& schema);

}  // namespace cudp
