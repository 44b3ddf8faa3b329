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

/// Turns rows of a table into coded rows (row_layout.hpp) or texts' words, and labels, each row by
/// itself.
class RowEncoder {
 public:
  /// schema: complete. texts: of a schema with texts, null otherwise. Both must outlive the
  /// encoder. scoring: as TableOptions has it; a fault then says what to type.
  explicit RowEncoder(const TableSchema& schema, const TextCoder* texts = nullptr,
                      Malformed malformed = Malformed::refuse, bool scoring = false);

  /// Appends the row. Cells that the schema does not allow are missing values or go to `faults`,
  /// and with a fault the row's features and label mean nothing. with_label: false gives label 0,
  /// or target 0, without looking at the cell.
  void append(const TableRow& row, bool with_label, Dataset& to, TableFaults& faults) const;
  /// An empty data set of the right shape.
  Dataset empty() const;
  void reserve(Dataset& set, std::uint64_t rows) const;

 private:
  /// A column with what is worked out once.
  struct Code {
    const Column& column;
    int offset;                  // its first feature
    double log_range;            // log1p(max - min), of a logarithmic column
    bool missing_may_be_number;  // a missing text of the schema can be read as a number
    TextTable lookup;            // of categories and classes
  };

  void put_number(const Code& code, const Numeric& numeric, const TableRow& row,
                  std::string_view cell, RowWriter& out, TableFaults& faults) const;
  /// The category's feature, or that of no feature.
  std::uint32_t category(const Code& code, const Categorical& categorical, const TableRow& row,
                         std::string_view cell, TableFaults& faults) const;
  std::uint8_t class_of(const Code& code, const Label& label, const TableRow& row,
                        std::string_view cell, TableFaults& faults) const;
  /// Scaled; -1 where the row has a fault.
  float target_of(const Code& code, const Target& target, const TableRow& row,
                  std::string_view cell, TableFaults& faults) const;
  bool counts_as_missing(const Code& code, const TableRow& row, std::string_view cell) const;

  const TableSchema& schema_;
  Malformed malformed_;
  bool scoring_;
  std::optional<TextEncoder> texts_;
  std::vector<Code> codes_;
  std::shared_ptr<const RowLayout> layout_;  // null: rows are texts
  int features_ = 0;
};

/// Throws InputError "SCHEMA: ..." where a column has no code for missing values, which
/// Malformed::missing needs for each: a numeric, date, label or target column without `fill`.
/// `source` names the schema.
void require_missing_codes(const TableSchema& schema, std::string_view source);

}  // namespace cudp
