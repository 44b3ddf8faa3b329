#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/share.hpp"
#include "runtime/data/table.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// Options for reading a table's rows: which columns are kept, and how errors are treated.
struct TableOptions {
  Malformed malformed = Malformed::refuse;
  /// Whether labels are read. If false, all labels are 0, and the file may lack the label's column.
  bool labels = true;
  /// Whether rows are scored with a trained model. A file with a header may then lack columns that
  /// give no feature, and columns that the schema lacks are dropped.
  bool scoring = false;
  bool units = false;  ///< use only the first max_rows rows of each unit of privacy
  /// Whether the cells of the id column are kept, if the file has it. The reader throws InputError
  /// if the schema has no such column.
  bool ids = false;
  /// Name of a column whose cells are kept, so that results can be computed for each value of it;
  /// empty if no such column is kept.
  std::string group_by{};
  bool row_texts = false;       ///< keep the texts of the rows
  std::size_t max_rows = 4096;  ///< maximum number of rows in a block; fewer if rows are wide
  /// Tokenizer and vocabulary for a text column; must outlive the reader. Null if the table has no
  /// such column.
  const TextCoder* coder = nullptr;
  RowStorage storage{};  ///< whether features are kept in memory or in a file
  bool ahead = true;     ///< a thread reads the next block while one is in use
};

/// A list of texts that are stored in one contiguous buffer, so that no memory is allocated per
/// text.
class TextList {
 public:
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void push_back(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  void clear() {
    bytes_.clear();
    ends_.clear();
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

/// Maximum size of a block: number of rows times number of features (or words) per row.
inline constexpr std::uint64_t kMaxBlockNumbers = std::uint64_t{4} << 20;

/// A block of consecutive rows of a table, converted to examples.
struct TableBlock {
  std::uint64_t first_row = 0;  ///< index of the block's first row in the table
  /// The rows of the block, converted to examples. If labels are not read (TableOptions::labels),
  /// they are 0.
  Dataset examples;
  TextList ids;     ///< [n] cells of the id column if has_ids()
  TextList groups;  ///< [n] cells of the column TableOptions::group_by, if set
  TextList rows;    ///< [n] texts of the rows, if TableOptions::row_texts
};

/// Reads a table in blocks of rows, in order. Memory use does not grow with the number of rows.
class TableReader {
 public:
  /// Makes a reader for a table, and reads its header. bytes: the table's file. Requires that the
  /// schema is complete, and that bytes and schema outlive the reader. Throws InputError if the
  /// header lacks columns of the schema, if the file is not a table, or if `options` names a column
  /// that the schema lacks.
  TableReader(ByteReader& bytes, const TableSchema& schema, const TableOptions& options);
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  TableReader(TableReader&&) = delete;
  TableReader& operator=(TableReader&&) = delete;

  /// Returns a data set without examples that has the shape and kind of features of the table's
  /// examples.
  Dataset empty() const;
  /// Returns whether blocks have the cells of the id column: these were requested
  /// (TableOptions::ids), and the file has that column.
  bool has_ids() const;
  /// Returns the names of the columns that the file has but the schema does not name. Their cells
  /// are not read.
  const std::vector<std::string>& dropped() const;
  /// Reads the next block; returns false after the last one, or at once if there is no row. The
  /// memory of `block` is reused. Throws InputError if rows have errors; the message lists up to
  /// TableFaults::kMax of them. No block after the one with the first error is returned.
  bool next(TableBlock& block);

 private:
  class Source;
  class Ahead;

  std::unique_ptr<Source> source_;
  std::unique_ptr<Ahead> ahead_;  // null: blocks are read by the caller
};

/// Returns an object that collects one rank's share of the table's rows, with memory reserved.
/// empty: a data set without examples that has the shape of the table's examples
/// (TableReader::empty()). rows: number of rows of the table. file: name of the
/// table, for messages.
KeptRange kept_rows(Dataset empty, const TableSchema& schema, const TableOptions& options,
                    Share share, std::uint64_t rows, const std::string& file);

/// Reads the rows that belong to one rank (process) into a data set, and checks the rows of other
/// ranks, too. share: which rank this is, and out of how many; it determines a contiguous range of
/// the rows. rows: number of rows in the table; if there is only one rank, it is used only to
/// reserve memory.
Dataset read_table(ByteReader& bytes, const TableSchema& schema, const TableOptions& options,
                   std::uint64_t rows, Share share = {});

}  // namespace cudp
