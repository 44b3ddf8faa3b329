#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"

namespace cudp {

/// Forward pass of a dense layer for examples in the compact form of CodedRows: numeric features as
/// floats, one-hot features as codes, the indices of the features that are 1. So each code adds one
/// row of the weights:
///   out[e * out_stride + n] = bias[n] + sum over features j of x_e(j) * weights[j * columns + n]
/// for e < count, n < columns, where x_e is the dense form of row examples[e]. columns is a
/// multiple of 16. If a row's codes are in ascending order, the results are equal, bit for bit, to
/// those of a product (GatherGemm) with the dense row: the same summands are added in the same
/// order, and the zeros of the dense row change nothing.
struct CodedProduct {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [count], row of each example
  const float* weights;           ///< [features, columns], weights of the layer
  const float* bias;              ///< [columns], bias of the layer
  float* out;
  std::int64_t out_stride;
  int count;
  int columns;
  /// Whether the layer has one output. The columns after the first are then padding, whose weights
  /// and bias are 0, and their results are set to 0.
  bool has_one_output = false;
};

/// Sum of a dense layer's clipped gradients over examples in the compact form of CodedRows (numeric
/// features, and the indices of one-hot features that are 1). Gradients are rounded to multiples of
/// `grid`, a power of two, and the sums are integers that count these multiples:
///   units[j * columns + n] += round(x_t(j) * y_t(n)),  bias_units[n] += round(y_t(n)),
/// for every example t < terms, feature j and n < columns. y are the gradients of the outputs,
/// divided by grid and scaled to clip them. The integers are those that AddOuter adds for the dense
/// rows. columns is a multiple of 16. Requires |y|, |x y| <= 2^22 (kMaxUnits); the code that scales
/// y ensures it.
struct AddCodedOuter {
  CodedRows rows;
  const std::uint32_t* examples;  ///< [terms], row of each example
  const float* y;                 ///< gradients of the outputs, times clip factor / grid
  const std::int32_t* y_row;      ///< [terms], offset in y of each example's gradient
  /// Sum of the gradients of the weights [features, columns], as integer multiples of `grid`.
  std::int32_t* units;
  std::int32_t* bias_units;  ///< [columns], sum of the bias's gradients, as multiples of grid
  int terms;
  int columns;
};

}  // namespace cudp
