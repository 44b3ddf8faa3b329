#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"

namespace cudp {

/// Product of a dense layer with coded rows. The feature of a code is 1, so its term is a row of
/// weights:
///   out[e out_stride + n] = bias[n] + sum over features j of x_e(j) weights[j columns + n]
/// for e < count, n < columns, with x_e = row examples[e]. columns is a multiple of 16. If the
/// codes are in the order of their features, terms are added in the order of GatherGemm on the
/// dense row, whose zeros change nothing. The results are then equal to the last bit.
struct CodedProduct {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [count]
  const float* weights;           ///< [features, columns]
  const float* bias;              ///< [columns]
  float* out;
  std::int64_t out_stride;
  int count;
  int columns;
};

/// Sum of a dense layer's clipped gradients over coded rows. It adds what AddOuter adds for the
/// dense rows:
///   units[j columns + n] += round(x_t(j) y_t(n)),  bias_units[n] += round(y_t(n)),
/// for every term t, feature j and n < columns. columns is a multiple of 16. Requires |y|, |x y| <=
/// 2^22 (kMaxUnits); the code that scales y ensures it.
struct AddCodedOuter {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [terms]
  const float* y;                 ///< gradients times clip factor / grid
  const std::int32_t* y_row;      ///< [terms], offset of a term in y
  std::int32_t* units;            ///< [features, columns]
  std::int32_t* bias_units;       ///< [columns]
  int terms;
  int columns;
};

}  // namespace cudp
