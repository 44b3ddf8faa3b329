#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// Sum of a dense layer's clipped gradients over examples. Gradients are rounded to multiples of
/// `grid`, a power of two, and the sums are integers that count these multiples. The gradient of
/// example t is the outer product of x_t, its inputs, and y_t, the gradient of its outputs divided
/// by grid and multiplied by its clip factor. Every number of the product is rounded independently
/// before it is added:
///   units[m * columns + n] += round(x_t(m) * y_t(n))
/// for every example t < terms, m < rows, n < columns. columns is a multiple of 16; those from
/// `outputs` on are padding, whose y is 0. Requires |x y| <= 2^22 (kMaxUnits); the code that scales
/// y ensures it.
///
/// With a transform (coordinate-wise clipping), y is not scaled:
///   units += round((x y - mean) * inverse * scale_t),
/// where mean and inverse are the transform's arrays, in the order of the packed weights, and
/// scale_t is the example's clip factor / grid. Results beyond +-2^22 are clamped.
struct AddOuter {
  const float* x;
  /// Gradients of the outputs, multiplied by each example's clip factor / grid; not multiplied if
  /// transform is set.
  const float* y;
  std::int32_t* units;
  const std::int32_t* x_row;  ///< [rows], offset of input m in x
  const GemmStep* step;       ///< [terms], offsets of an example in x (a) and y (b)
  int rows;
  int terms;
  int columns;
  int outputs = columns;
  Transform transform = {};  ///< arrays of [rows columns]; null pointers: none
  /// Clip factor / grid of each example, [terms]; used only if transform is set.
  const float* scale = nullptr;
};

}  // namespace cudp
