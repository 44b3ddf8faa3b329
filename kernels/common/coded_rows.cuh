#pragma once
// Access to stored rows of a CodedRows table in device memory. Rows are read in 32-bit words,
// whatever the size of a code.
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Decodes a row of a CodedRows table in device code. A stored row has the values of its numeric
/// features ("numbers") and the indices of its one-hot features that are 1 ("codes").
struct CodedRecord {
  const CodedRows& rows;
  const std::uint32_t* words;

  __device__ __forceinline__ CodedRecord(const CodedRows& r, std::int64_t example)
      : rows(r),
        words(reinterpret_cast<const std::uint32_t*>(r.rows) + example * (r.row_bytes / 4)) {}

  __device__ __forceinline__ float number(int k) const { return ScalarLanes::from_bits(words[k]); }
  /// Returns the k-th code: the index of the feature that is 1 in the k-th group of one-hot
  /// features, or rows.features if all features of the group are 0.
  __device__ __forceinline__ int code(int k) const {
    const int byte = k * rows.code_bytes;
    const std::uint32_t word = words[rows.numbers + 1 + byte / 4] >> 8 * (byte % 4);
    return static_cast<int>(rows.code_bytes == 4 ? word : word & ((1u << 8 * rows.code_bytes) - 1));
  }
  /// Returns feature i of the dense row (all features, zeros included) that this stored row
  /// encodes.
  __device__ __forceinline__ float feature(int i) const {
    float x = 0.0f;
    for (int k = 0; k < rows.numbers; ++k) {
      if (rows.number_feature[k] == i) x = number(k);
    }
    for (int k = 0; k < rows.codes; ++k) {
      if (code(k) == i) x = 1.0f;
    }
    return x;
  }
};

}  // namespace cudp::inline CUDP_SIMT
