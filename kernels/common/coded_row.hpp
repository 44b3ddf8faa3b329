#pragma once
// Access to the fields of one stored row of a CodedRows table, for the CPU's kernels. Only
// *_cpu.cpp files include this header, once per SIMD level.
#include "kernels/common/coded_rows.hpp"
#include "kernels/common/vec.hpp"

namespace cudp::CUDP_SIMD {

/// Decodes a row of a CodedRows table in host code. A stored row has the values of its numeric
/// features ("numbers") and the indices of its one-hot features that are 1 ("codes"). Code: the
/// unsigned integer type in which the table stores a code.
template <class Code>
struct CodedRow {
  explicit CodedRow(const CodedRows& r)
      : rows(r.rows),
        number_feature(r.number_feature),
        row_bytes(r.row_bytes),
        numbers(r.numbers),
        codes(r.codes),
        first_code((std::int64_t{r.numbers} + 1) * 4) {}

  const std::uint8_t* row(std::uint32_t example) const {
    return rows + static_cast<std::int64_t>(example) * row_bytes;
  }
  float number(const std::uint8_t* row, int k) const {
    float x = 0.0f;
    __builtin_memcpy(&x, row + std::int64_t{k} * 4, sizeof x);
    return x;
  }
  float square(const std::uint8_t* row) const { return number(row, numbers); }
  Code code(const std::uint8_t* row, int k) const {
    Code c;
    __builtin_memcpy(&c, row + first_code + std::int64_t{k} * static_cast<int>(sizeof c), sizeof c);
    return c;
  }

  const std::uint8_t* rows;
  const std::int32_t* number_feature;
  std::int64_t row_bytes;
  int numbers;
  int codes;
  std::int64_t first_code;
};

}  // namespace cudp::CUDP_SIMD
