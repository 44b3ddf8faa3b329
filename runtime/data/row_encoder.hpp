#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/table.hpp"
#include "runtime/data/text.hpp"
#include "runtime/data/text_table.hpp"

namespace cudp {

/// Converts rows of a table, one by one, to labelled examples. Features are coded rows, a compact
/// form of sparse rows, or word ids if the schema has a text column.
class RowEncoder {
 public:
  /// Makes an encoder for the rows of a table. schema: the table's schema; must be complete. texts:
  /// tokenizer and vocabulary if the schema has a text column, else null. Both must outlive the
  /// encoder. malformed: whether cells that the schema does not allow are errors or count as
  /// missing. scoring: whether rows are scored with a trained model; error messages then recommend
  /// other options.
  explicit RowEncoder(const TableSchema& schema, const TextCoder* texts = nullptr,
                      Malformed malformed = Malformed::refuse, bool scoring = false);

  /// Appends the row to `to`. Cells that the schema does not allow count as missing values, or are
  /// errors that are added to `faults`, depending on the constructor's `malformed`. A row with an
  /// error gets meaningless features and a meaningless label. with_label: if false, the label or
  /// target is 0 and its cell is not read.
  void append(const TableRow& row, bool with_label, Dataset& to, TableFaults& faults) const;
  /// Returns a data set without examples to which append() can add: it has the shape and the kind
  /// of features of the encoded rows.
  Dataset empty() const;
  void reserve(Dataset& set, std::uint64_t rows) const;

 private:
  /// A column of the schema, with values that are computed from it once and then used for every
  /// row.
  struct Code {
    const Column& column;
    int offset;                  // index of its first feature
    double log_range;            // log1p(max - min), for a logarithmic column
    bool missing_may_be_number;  // a missing text of the schema can be read as a number
    TextTable lookup;            // categories or classes
  };

  void put_number(const Code& code, const Numeric& numeric, const TableRow& row,
                  std::string_view cell, RowWriter& out, TableFaults& faults) const;
  /// Returns the index of the one-hot feature that the cell sets to 1, or layout_->features if the
  /// cell sets no feature.
  std::uint32_t category(const Code& code, const Categorical& categorical, const TableRow& row,
                         std::string_view cell, TableFaults& faults) const;
  std::uint8_t class_of(const Code& code, const Label& label, const TableRow& row,
                        std::string_view cell, TableFaults& faults) const;
  /// Returns the target in the cell, scaled to [-1, 1]; -1 if the cell is an error, which is also
  /// counted in `faults`.
  float target_of(const Code& code, const Target& target, const TableRow& row,
                  std::string_view cell, TableFaults& faults) const;
  bool counts_as_missing(const Code& code, const TableRow& row, std::string_view cell) const;

  const TableSchema& schema_;
  Malformed malformed_;
  bool scoring_;
  std::optional<TextEncoder> texts_;
  std::vector<Code> codes_;
  std::shared_ptr<const RowLayout> layout_;  // null if rows are texts
  int features_ = 0;
};

/// Throws InputError if a numeric, date, label or target column of the schema does not state
/// `fill`, the value that a missing cell counts as. Call if malformed cells are to count as missing
/// (Malformed::missing). source: name of the schema, for the message.
void require_missing_codes(const TableSchema& schema, std::string_view source);

}  // namespace cudp
