#pragma once
// Rows of a table as numbers and codes. One-hot features are zeros but for one of each group, so a
// row keeps the place of that one, its code, and nothing of the zeros.
#include <cstdint>

namespace cudp {

/// Rows in memory, a record each:
///   numbers float32, |x|^2 float32, codes of code_bytes each, zeros up to a multiple of 4 bytes.
/// The dense row x has `features` numbers: x[number_feature[k]] is number k, x[c] = 1 for each code
/// c, and all else is 0. The code `features` stands for no feature: a group whose features are all
/// 0. No code is larger, and codes of a row differ but for that one. Numbers are finite.
/// |x|^2 is the sum over the dense row, in double and then rounded to float32.
struct CodedRows {
  const std::uint8_t* rows = nullptr;            ///< [n, row_bytes], 4-byte aligned
  const std::int32_t* number_feature = nullptr;  ///< [numbers], each < features
  std::int64_t row_bytes = 0;
  int numbers = 0;
  int codes = 0;
  int code_bytes = 1;  ///< 1, 2 or 4: the least that holds `features`
  int features = 0;
};

/// Bytes of a record of CodedRows.
constexpr std::int64_t coded_row_bytes(int numbers, int codes, int code_bytes) {
  const std::int64_t bytes = std::int64_t{4} * (numbers + 1) + std::int64_t{code_bytes} * codes;
  return (bytes + 3) / 4 * 4;
}
/// Bytes of a code that can be any of 0..features.
constexpr int bytes_of_code(int features) {
  return features <= 0xff ? 1 : features <= 0xffff ? 2 : 4;
}

}  // namespace cudp
