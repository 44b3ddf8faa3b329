#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/products/gather_gemm.hpp"

namespace cudp {

/// A dense layer's sum of clipped gradients: the gradient of one example is the outer product of
/// its inputs x and its weighed output gradients y, and every number of it is rounded by itself to
/// the nearest unit before it is added:
///   units[m columns + n] += round(x_t(m) y_t(n)) for every term t, m < rows, n < columns.
/// |x y| <= 2^22 (kMaxUnits), which whoever weighs y sees to. columns is a multiple of 16; those
/// from `outputs` on are padding, whose y is 0. With a transform, of the weights as they are
/// packed:
///   units += round((x y - mean) inverse scale_t), y not weighed; beyond 2^22 units, that.
struct AddOuter {
  const float* x;
  const float* y;  ///< gradients times factor over grid; with a transform, as they are
  std::int32_t* units;
  const std::int32_t* x_row;  ///< [rows], offset of input m in x
  const GemmStep* step;       ///< [terms], offsets of an example in x (a) and y (b)
  int rows;
  int terms;
  int columns;
  int outputs = columns;
  Transform transform = {};      ///< [rows columns] each
  const float* scale = nullptr;  ///< [terms], factor over grid; with a transform
};

}  // namespace cudp
