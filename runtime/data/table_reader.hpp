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
  /// False: labels are 0 and never looked at, and the label's column may be absent from the file.
  bool labels = true;
  /// True: for a model that was trained before. Columns that give no feature may be absent from a
  /// file with a header, and columns that the schema lacks are dropped.
  bool scoring = false;
  bool units = false;  ///< only the first rows of each of the schema's units
  /// Keep the texts of the id column, if the file has it. Throws where the schema has none.
  bool ids = false;
  std::string group_by{};       ///< keep the texts of this column of the schema; empty: of none
  bool row_texts = false;       ///< keep the rows themselves
  std::size_t max_rows = 4096;  ///< of a block; fewer where rows are wide
  const TextCoder* coder = nullptr;  ///< of a schema with texts; must outlive the reader
  bool ahead = true;                 ///< a thread reads the next block while one is used
};

/// Texts one behind the other, without an allocation for each.
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

/// The numbers that a block of rows holds at most, features and words alike.
inline constexpr std::uint64_t kMaxBlockNumbers = std::uint64_t{4} << 20;

/// Some rows of a table, in order.
struct TableBlock {
  std::uint64_t first_row = 0;  ///< number of its first row, from 0
  /// Rows [n], coded, floats or words of texts; labels [n], all 0 where they are not read.
  Dataset examples;
  TextList ids;     ///< [n] where the reader has_ids
  TextList groups;  ///< [n] where asked for
  TextList rows;    ///< [n] where asked for
};

/// Reads a table in blocks, in the order of its rows; memory does not grow with their number.
class TableReader {
 public:
  /// schema: complete. Both must outlive the reader. Throws InputError where the header does not
  /// name the schema's columns, where the file is no table, or where options name a column that the
  /// schema does not have.
  TableReader(ByteReader& bytes, const TableSchema& schema, const TableOptions& options);
  ~TableReader();
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  TableReader(TableReader&&) = delete;
  TableReader& operator=(TableReader&&) = delete;

  /// An empty data set of the right shape.
  Dataset empty() const;
  /// Whether blocks have ids: they are asked for, and the file has them.
  bool has_ids() const;
  /// Names of the file's columns that the schema lacks.
  const std::vector<std::string>& dropped() const;
  /// The next block; false behind the last, at once where there is no row. What `block` held is
  /// reused. Throws InputError: up to TableFaults::kMax faults of rows are told at once, and no row
  /// behind the block with the first is given.
  bool next(TableBlock& block);

 private:
  class Source;
  class Ahead;

  std::unique_ptr<Source> source_;
  std::unique_ptr<Ahead> ahead_;  // null: none
};

/// Keeps a share's range of rows, with room for it. empty: of the reader.
KeptRange kept_rows(Dataset empty, const TableSchema& schema, const TableOptions& options,
                    Share share, std::uint64_t rows);

/// Reads a share's range of the rows into one data set; those of others must be right, too. rows:
/// how many there are; of all only how many to make room for.
Dataset read_table(ByteReader& bytes, const TableSchema& schema, const TableOptions& options,
                   std::uint64_t rows, Share share = {});

}  // namespace cudp
