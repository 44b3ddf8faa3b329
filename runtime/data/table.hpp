#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// One row of a table, its cells in the order of the schema's columns.
struct TableRow {
  const std::string& file;
  std::uint64_t line = 0;  ///< in the file, from 1
  std::string_view text;   ///< the whole line
  std::span<const std::string_view> cells;

  /// Throws InputError "FILE, line N, column 'NAME': expected ..., found ...".
  [[noreturn]] void fail(const Column& column, std::string_view expected,
                         std::string_view found) const;
};

/// Calls `use` for every row. Throws InputError on a header that does not name the schema's
/// columns, a row with too few or too many cells, or no row at all.
void for_each_row(ByteReader& reader, const TableSchema& schema,
                  const std::function<void(const TableRow&)>& use);

/// How many rows there are, without looking into them.
std::uint64_t count_rows(ByteReader& reader, const TableSchema& schema);

/// A schema that knows only the names in the header row. The label is the column named label, class
/// or target, in any case, and failing that the last.
TableSchema schema_from_header(ByteReader& reader, char delimiter);

/// A finite decimal number that is the whole text.
std::optional<double> parse_number(std::string_view text);

/// The text that names the class, without the suffix that is to be stripped.
std::string_view class_text(const Label& label, std::string_view cell);

/// Turns rows into features and labels.
class RowEncoder {
 public:
  /// schema: complete; must outlive the encoder. texts: of a schema with texts, and then it must
  /// outlive the encoder too.
  explicit RowEncoder(const TableSchema& schema, const TextCoder* texts = nullptr);

  /// Appends the row. Throws InputError on a cell that the schema does not allow.
  void append(const TableRow& row, Dataset& to) const;
  /// An empty data set of the right shape.
  Dataset empty() const;
  void reserve(Dataset& set, std::uint64_t rows) const;

 private:
  using Lookup = std::unordered_map<std::string_view, int>;

  static void put_number(const TableRow& row, const Column& column, const Numeric& numeric,
                         bool missing, std::string_view cell, float* out);

  const TableSchema& schema_;
  std::optional<TextEncoder> texts_;
  std::vector<Lookup> lookups_;  // one a column, empty for those without texts
  std::vector<int> offsets_;     // first feature of each column
  int features_ = 0;
};

/// Counts the words of the texts. Not private; see WordCounter.
WordCounter count_words(ByteReader& reader, const TableSchema& schema);

/// Fills in what the schema leaves open (kinds, bounds, categories, classes) from the rows. Not
/// private by itself: whoever calls this must say so in the certificate. Throws InputError where no
/// choice makes sense, e.g. more than 1,000 categories.
TableSchema complete_from_rows(const TableSchema& schema, ByteReader& reader);

}  // namespace cudp
