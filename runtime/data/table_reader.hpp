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

/// How a table is read.
struct TableOptions {
  Malformed malformed = Malformed::refuse;
  /// If false, labels are 0 and never read, and the file may lack the label's column.
  bool labels = true;
  /// True to score with a model that was trained before. A file with a header may then lack columns
  /// that give no feature, and columns that the schema lacks are dropped.
  bool scoring = false;
  bool units = false;  ///< use only the first rows of each of the schema's units
  /// Keep the texts of the id column, if the file has it. Throws InputError if the schema has none.
  bool ids = false;
  std::string group_by{};            ///< column of the schema whose texts are kept; empty: none
  bool row_texts = false;            ///< keep the texts of the rows
  std::size_t max_rows = 4096;       ///< maximum of a block; fewer if rows are wide
  const TextCoder* coder = nullptr;  ///< coder for a schema with texts; must outlive the reader
  RowStorage storage{};              ///< where the features of a data set of rows are kept
  bool ahead = true;                 ///< a thread reads the next block while one is in use
};

/// Texts stored one after another, without an allocation for each.
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

/// Maximum number of features or words in a block of rows.
inline constexpr std::uint64_t kMaxBlockNumbers = std::uint64_t{4} << 20;

/// Consecutive rows of a table.
struct TableBlock {
  std::uint64_t first_row = 0;  ///< number of its first row in the table, from 0
  /// Rows [n]: coded, floats or words of texts. labels [n]: all 0 if they are not read.
  Dataset examples;
  TextList ids;     ///< [n] if the reader has_ids
  TextList groups;  ///< [n] if requested
  TextList rows;    ///< [n] if requested
};

/// Reads a table in blocks, in the order of its rows. Memory use does not grow with their number.
class TableReader {
 public:
  /// schema: complete. bytes and schema must outlive the reader. Throws InputError if the header
  /// does not name the schema's columns, if the file is not a table, or if options name a column
  /// that the schema lacks.
  TableReader(ByteReader& bytes, const TableSchema& schema, const TableOptions& options);
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  TableReader(TableReader&&) = delete;
  TableReader& operator=(TableReader&&) = delete;

  /// Returns an empty data set of the right shape.
  Dataset empty() const;
  /// Returns whether blocks have ids: they were requested, and the file has them.
  bool has_ids() const;
  /// Names of columns in the file that the schema lacks.
  const std::vector<std::string>& dropped() const;
  /// Reads the next block; returns false after the last one, or at once if there is no row. The
  /// memory of `block` is reused. Throws InputError with up to TableFaults::kMax faults of rows; no
  /// row after the block with the first fault is returned.
  bool next(TableBlock& block);

 private:
  class Source;
  class Ahead;

  std::unique_ptr<Source> source_;
  std::unique_ptr<Ahead> ahead_;  // null: blocks are read by the caller
};

/// Makes a KeptRange for a share of `rows` rows, with memory reserved. empty: the reader's empty
/// data set. file: name of the table.
KeptRange kept_rows(Dataset empty, const TableSchema& schema, const TableOptions& options,
                    Share share, std::uint64_t rows, const std::string& file);

/// Reads a share's range of the rows into one data set; rows of other shares are checked too. rows:
/// number of rows in the table; if the share is everything, used only to reserve memory.
Dataset read_table(ByteReader& bytes, const TableSchema& schema, const TableOptions& options,
                   std::uint64_t rows, Share share = {});

}  // namespace cudp
