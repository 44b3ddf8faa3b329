#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"

namespace cudp {

/// Forward pass of a dense layer for examples in the compact form of CodedRows (numbers, and
/// one-hot features stored as codes). A code's feature is 1, so it adds a row of the weights:
///   out[e out_stride + n] = bias[n] + sum over features j of x_e(j) weights[j columns + n]
/// for e < count, n < columns, with x_e = row examples[e]. columns is a multiple of 16. If a row's
/// codes are in the order of their features, the results are equal, bit for bit, to those of
/// GatherGemm on the dense row: products are added in the same order, and the dense row's zeros
/// change nothing.
struct CodedProduct {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [count], row of each example
  const float* weights;           ///< [features, columns], weights of the layer
  const float* bias;              ///< [columns], bias of the layer
  float* out;
  std::int64_t out_stride;
  int count;
  int columns;
};

/// Sum of a dense layer's clipped gradients over examples in the compact form of CodedRows. It adds
/// the same integers as AddOuter does for dense rows (multiples of `grid`, the spacing to which
/// gradients are rounded):
///   units[j columns + n] += round(x_t(j) y_t(n)),  bias_units[n] += round(y_t(n)),
/// for every example t < terms, feature j and n < columns. columns is a multiple of 16. Requires
/// |y|, |x y| <= 2^22 (kMaxUnits); the code that scales y ensures it.
struct AddCodedOuter {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [terms], row of each example
  const float* y;                 ///< gradients of the outputs, times clip factor / grid
  const std::int32_t* y_row;      ///< [terms], offset of each example's gradient in y
  /// [features, columns], sum of the weights' gradients, as multiples of grid.
  std::int32_t* units;
  std::int32_t* bias_units;  ///< [columns], sum of the bias's gradients, as multiples of grid
  int terms;
  int columns;
};

}  // namespace cudp
