#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"

namespace cudp {

/// A dense layer's product with coded rows: a code's feature is 1, so its term is a row of weights.
///   out[e out_stride + n] = bias[n] + sum over features j of x_e(j) weights[j columns + n]
/// for e < count, n < columns, x_e row examples[e]. columns is a multiple of 16. Where codes stand
/// in the order of their features, terms are added as GatherGemm adds those of the dense row, whose
/// zeros change nothing: the results are the same to the last bit.
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

/// A dense layer's sum of clipped gradients over coded rows: what AddOuter adds for the dense rows,
///   units[j columns + n] += round(x_t(j) y_t(n)),  bias_units[n] += round(y_t(n)),
/// for every term t, feature j and n < columns. |y| and |x y| <= 2^22 (kMaxUnits), which whoever
/// weighs y sees to. columns is a multiple of 16.
struct AddCodedOuter {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [terms]
  const float* y;                 ///< gradients times factor over grid
  const std::int32_t* y_row;      ///< [terms], offset of a term in y
  std::int32_t* units;            ///< [features, columns]
  std::int32_t* bias_units;       ///< [columns]
  int terms;
  int columns;
};

}  // namespace cudp
