#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// Sum of a dense layer's clipped gradients over examples, as integers: multiples of `grid`, the
/// spacing to which gradients are rounded. The gradient of one example t is the outer product of
/// its inputs x_t and the scaled gradient y_t of its outputs. Every number of it is rounded
/// independently to the nearest integer before it is added:
///   units[m columns + n] += round(x_t(m) y_t(n))
/// for every example t < terms, m < rows, n < columns. columns is a multiple of 16; those from
/// `outputs` on are padding, whose y is 0. Requires |x y| <= 2^22 (kMaxUnits); the code that scales
/// y ensures it. With a transform (coordinate-wise clipping), given for the weights in their packed
/// order:
///   units += round((x y - mean) inverse scale_t),
/// with y unscaled. Results beyond +-2^22 are clamped.
struct AddOuter {
  const float* x;
  /// Gradients of the outputs, times clip factor / grid; with a transform, unscaled.
  const float* y;
  std::int32_t* units;
  const std::int32_t* x_row;  ///< [rows], offset of input m in x
  const GemmStep* step;       ///< [terms], offsets of an example in x (a) and y (b)
  int rows;
  int terms;
  int columns;
  int outputs = columns;
  Transform transform = {};  ///< [rows columns] each
  /// [terms], clip factor / grid of each example; used only if transform is set.
  const float* scale = nullptr;
};

}  // namespace cudp
