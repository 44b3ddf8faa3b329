#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/common/coded_rows.hpp"

namespace cudp {

/// Layout of the coded rows of a table, a compact form of sparse rows: numbers for numeric columns,
/// and codes for one-hot columns, where a code is the index of a feature that is 1.
/// kernels/common/coded_rows.hpp describes a row's record in memory.
struct RowLayout {
  /// For each number of a row, the index of the feature whose value it is, [numbers()]; ascending,
  /// each less than the number of features.
  std::vector<std::int32_t> number_feature;
  int codes = 0;     ///< number of codes in a row
  int features = 0;  ///< number of features of the dense row

  int numbers() const { return static_cast<int>(number_feature.size()); }
  int code_bytes() const { return bytes_of_code(features); }
  std::int64_t row_bytes() const { return coded_row_bytes(numbers(), codes, code_bytes()); }
  /// Returns a view, for kernels, of rows in memory that have this layout. rows: address of the
  /// first row.
  CodedRows view(const std::uint8_t* rows) const {
    return {.rows = rows,
            .number_feature = number_feature.data(),
            .row_bytes = row_bytes(),
            .numbers = numbers(),
            .codes = codes,
            .code_bytes = code_bytes(),
            .features = features};
  }

  bool operator==(const RowLayout&) const = default;
};

/// Returns code k of a coded row: the index of a feature that is 1. rows: describes the layout of
/// rows in memory. row: the row's bytes.
inline std::uint32_t code_of(const CodedRows& rows, const std::uint8_t* row, int k) {
  const std::uint8_t* const codes = row + std::ptrdiff_t{4} * (rows.numbers + 1);
  std::uint16_t two = 0;
  std::uint32_t four = 0;
  switch (rows.code_bytes) {
    case 1:
      return codes[k];
    case 2:
      std::memcpy(&two, codes + std::ptrdiff_t{2} * k, sizeof two);
      return two;
    default:
      std::memcpy(&four, codes + std::ptrdiff_t{4} * k, sizeof four);
      return four;
  }
}

/// Writes one coded row to memory. The caller must append the numbers in the order of the layout,
/// and the codes, and then call finish().
class RowWriter {
 public:
  /// Starts to write one row. row: memory for the row, [layout.row_bytes()]. The layout must
  /// outlive the writer.
  RowWriter(const RowLayout& layout, std::uint8_t* row);
  /// Appends the number x. Throws Error if it is not finite, or if the row has all its numbers.
  void number(float x);
  /// Appends the code c, the index of a feature that is 1, or layout.features, which stands for no
  /// feature. Throws Error if the code is larger than that, or if the row has all its codes.
  void code(std::uint32_t c);
  /// Completes the row: writes its squared L2 norm, which is a part of it. Throws Error if a number
  /// or a code has not been appended.
  void finish();

 private:
  const RowLayout& layout_;
  std::uint8_t* row_;
  int numbers_ = 0;
  int codes_ = 0;
  double square_ = 0.0;
};

/// Expands a coded row: writes all its features, including zeros, to x [rows.features]. rows:
/// describes the layout of rows in memory. row: the row's bytes.
void expand_row(const CodedRows& rows, const std::uint8_t* row, std::span<float> x);

}  // namespace cudp
