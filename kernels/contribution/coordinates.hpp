#pragma once
// The arguments of the CUDA kernels of coordinate-wise clipping; coordinates_math.hpp says what it
// is.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

/// parts[2 k], parts[2 k + 1] = sums over some j of s_j and m_j^2 / s_j.
struct CoordinateSums {
  const std::uint32_t* active;  ///< [1]; nothing is done where it is 0: no step is taken
  const float* mean;
  const float* deviation;
  std::int64_t n;
  double* parts;  ///< [2 blocks]
};
/// The scale, from all the parts, and the four arrays [n]; square = 1 / scale^2, product = m /
/// scale^2.
struct CoordinateArrays {
  const std::uint32_t* active;  ///< likewise: numbers of a step that waits are read again
  const float* mean;
  const float* deviation;
  const double* parts;
  int count;
  CoordinateScale* scale;  ///< [1], written
  std::int64_t n;
  float* centre;  ///< m, shortened
  float* inverse;
  float* square;
  float* product;
};
/// n numbers of dense layer `group`, from the network's `first` on.
struct LayerShift {
  std::int64_t first;
  std::int64_t n;
  int group;
};
/// shifts[group] = sum of centre^2 square over a layer's numbers, its c, of so many layers at once.
struct LayerShifts {
  static constexpr int kMax = 32;
  const float* centre = nullptr;
  const float* square = nullptr;
  double* shifts = nullptr;
  int count = 0;
  LayerShift layer[kMax] = {};

  void add(const LayerShift& of) {
    expect(count < kMax, "coordinates: expected at most 32 dense layers");
    layer[count++] = of;
  }
};
/// y = x^2, [n].
struct SquareRows {
  const float* x;
  float* y;
  std::int64_t n;
};
/// parts[e] = dense_square with A = sum_j dy_j^2 u_j and B = sum_j dy_j v_j.
struct DenseTransformedNorm {
  Batch batch;
  const float* dy;  ///< [capacity, outputs]
  const float* u;   ///< [capacity, outputs]
  const float* v;   ///< [capacity, outputs]
  const double* shift;
  int inputs;
  int outputs;
  float* parts;  ///< [capacity]
};

inline void validate(const CoordinateSums& a) {
  expect(a.active && a.mean && a.deviation && a.parts && a.n > 0,
         "coordinates: expected pointers and n > 0");
}
inline void validate(const CoordinateArrays& a) {
  expect(a.active && a.mean && a.deviation && a.parts && a.count > 0 && a.scale && a.n > 0 &&
             a.centre && a.inverse && a.square && a.product,
         "coordinates: expected pointers, parts and n > 0");
}
inline void validate(const LayerShifts& a) {
  expect(a.centre && a.square && a.shifts && a.count > 0,
         "coordinates: expected pointers and layers");
}
inline void validate(const SquareRows& a) {
  expect(a.x && a.y && a.n > 0, "square: expected pointers and n > 0");
}
inline void validate(const DenseTransformedNorm& a) {
  validate(a.batch);
  expect(a.dy && a.u && a.v && a.shift && a.parts && a.inputs > 0 && a.outputs > 0,
         "dense transformed norm: expected pointers and sizes > 0");
}
/// No more blocks than a warp of the next kernel reads the parts of in 16 rounds.
inline LaunchShape launch_shape(const CoordinateSums& a) {
  LaunchShape shape = strided_shape(a.n / 16);
  if (shape.grid.x > 512) shape.grid.x = 512;
  return shape;
}
inline LaunchShape launch_shape(const CoordinateArrays& a) { return strided_shape(a.n); }
/// A block a layer.
inline LaunchShape launch_shape(const LayerShifts& a) {
  return {.grid = {static_cast<unsigned>(a.count)}, .block = {1024}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const SquareRows& a) { return strided_shape(a.n); }
/// A warp an example.
inline LaunchShape launch_shape(const DenseTransformedNorm& a) {
  return strided_shape(std::int64_t{a.batch.capacity} * 32);
}

}  // namespace cudp
