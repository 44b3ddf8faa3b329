#pragma once
// Arguments of the CUDA kernels for coordinate-wise clipping, which coordinates_math.hpp describes.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/contribution/coordinates_math.hpp"

namespace cudp {

/// Kernel, first of two, that prepares coordinate-wise clipping for a step: computes partial sums
/// over the parameters, which CoordinateArrays adds up. With m_j = mean[j] and s_j = deviation[j],
/// the mean and the standard deviation of coordinate j of the gradient, thread block k writes
/// parts[2 k] = sum of s_j and parts[2 k + 1] = sum of m_j^2 / s_j over its coordinates j.
struct CoordinateSums {
  const std::uint32_t* active;  ///< if *active is 0, no step runs and the kernel does nothing
  const float* mean;
  const float* deviation;
  std::int64_t n;
  double* parts;  ///< [2 blocks], written: the partial sums
};
/// Kernel, second of two, that prepares coordinate-wise clipping for a step. Adds up the `count`
/// pairs of partial sums that CoordinateSums wrote, which determine the scale of each coordinate.
/// Then writes four arrays [n] that the layers' kernels read: centre (the number that is subtracted
/// from each gradient coordinate), inverse = 1 / scale, square = 1 / scale^2 and product = centre /
/// scale^2.
struct CoordinateArrays {
  /// Address of StepCursor::active. If *active is 0, no step is being executed and the kernel does
  /// nothing. The arrays of the last step must then stay unchanged: the step may be waiting for the
  /// host to finish it, and still needs them.
  const std::uint32_t* active;
  const float* mean;
  const float* deviation;
  const double* parts;
  int count;
  CoordinateScale* scale;  ///< written: the scale of all coordinates
  std::int64_t n;
  float* centre;  ///< mean m of each coordinate, multiplied by scale->shrink
  float* inverse;
  float* square;
  float* product;
};
/// Position of a dense layer's n parameters among those of the network, for LayerShifts. first:
/// index of the first one. group: index of the layer among the layers with parameters.
struct LayerShift {
  std::int64_t first;
  std::int64_t n;
  int group;
};
/// Kernel for coordinate-wise clipping that computes, for `count` dense layers at once,
/// shifts[group] = sum of (centre / scale)^2 over the layer's parameters. That is the squared norm
/// of the part of (gradient - centre) / scale that is the same for all examples.
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
/// Computes y[i] = x[i]^2 for each i < n.
struct SquareRows {
  const float* x;
  float* y;
  std::int64_t n;
};
/// Computes, for each example e, the squared norm of a dense layer's transformed gradient,
/// (gradient - m) / scale, where m and scale are arrays with a number for each weight. The weights'
/// gradient is the product x_i dy_j of input i and the gradient dy_j of output j. It is not formed.
/// From u and v, which matrix products computed before, the kernel computes
///   A = sum_j dy_j^2 u_j,  B = sum_j dy_j v_j,  parts[e] = A - 2 B + c
/// plus a bound on the rounding error (dense_square()), where c = *shift is the sum of
/// (m / scale)^2 over the layer's weights.
struct DenseTransformedNorm {
  Batch batch;
  const float* dy;      ///< [capacity, outputs], gradient of the layer's outputs
  const float* u;       ///< [capacity, outputs], sum over inputs i of x_i^2 / scale_ij^2
  const float* v;       ///< [capacity, outputs], sum over inputs i of x_i m_ij / scale_ij^2
  const double* shift;  ///< sum that LayerShifts computed for the layer
  int inputs;
  int outputs;
  float* parts;  ///< [capacity], written: squared norms
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
/// Returns a launch shape with at most 512 blocks. Each block writes a partial sum; up to 512 of
/// them are later read by a single warp in 16 rounds.
inline LaunchShape launch_shape(const CoordinateSums& a) {
  LaunchShape shape = strided_shape(a.n / 16);
  if (shape.grid.x > 512) shape.grid.x = 512;
  return shape;
}
inline LaunchShape launch_shape(const CoordinateArrays& a) { return strided_shape(a.n); }
/// Returns a launch shape with one block per layer.
inline LaunchShape launch_shape(const LayerShifts& a) {
  return {.grid = {static_cast<unsigned>(a.count)}, .block = {1024}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const SquareRows& a) { return strided_shape(a.n); }
/// Returns a launch shape with one warp per example.
inline LaunchShape launch_shape(const DenseTransformedNorm& a) {
  return strided_shape(std::int64_t{a.batch.capacity} * 32);
}

}  // namespace cudp
