#pragma once
// Compact form of a table's rows: numbers and codes. At most one feature of a one-hot group is not
// zero. So a row stores one code for each group, the index of that feature, in place of the group's
// values.
#include <cstdint>

namespace cudp {

/// Table of rows in memory, in a compact form of row_bytes bytes per row: first the values of the
/// numeric features (`numbers` float32), then |x|^2 (float32), then `codes` integers of code_bytes
/// bytes, then zeros up to a multiple of 4 bytes. A code is the index of the feature that is 1 in a
/// group of one-hot features.
///
/// A stored row encodes a dense row x of `features` numbers: x[number_feature[k]] is the k-th
/// stored number, x[c] = 1 for each code c, and all others are 0. If a code equals `features`, all
/// features of its one-hot group are 0. The other codes of a row differ from each other. Numbers
/// are finite. |x|^2 is summed over the dense row in double and then rounded to float32.
struct CodedRows {
  const std::uint8_t* rows = nullptr;  ///< [n, row_bytes], 4-byte aligned
  /// Index of the feature whose value is the k-th stored number of a row, [numbers]; each index is
  /// < features.
  const std::int32_t* number_feature = nullptr;
  std::int64_t row_bytes = 0;  ///< size of a row [bytes]
  int numbers = 0;
  int codes = 0;
  int code_bytes = 1;  ///< 1, 2 or 4: fewest bytes that can store the number `features`
  int features = 0;
};

/// Returns the size of one stored row with `numbers` float32 numbers and `codes` codes [bytes].
constexpr std::int64_t coded_row_bytes(int numbers, int codes, int code_bytes) {
  const std::int64_t bytes = std::int64_t{4} * (numbers + 1) + std::int64_t{code_bytes} * codes;
  return (bytes + 3) / 4 * 4;
}
/// Returns the size of a code (the index of a feature) in a table with `features` features: the
/// fewest bytes that can store a whole number in 0..features.
constexpr int bytes_of_code(int features) {
  return features <= 0xff ? 1 : features <= 0xffff ? 2 : 4;
}

}  // namespace cudp
