#pragma once
// Coordinate-wise adaptive clipping (AdaCliP, Pichapati et al. 2019). Every coordinate j of a
// gradient has a mean m_j and a standard deviation s_j, estimated from what was released, and
//   scale_j = sqrt(s_j) sqrt(sum_l s_l),   w = (g - m) / scale,
// is clipped to norm 1, summed and noised; g~ = scale W / b + m.
//
// What rounding takes off w grows with |m / scale|, so where that exceeds kLargestShift m is
// shortened to it: a function of released numbers, and a bound that
// runtime/device/sensitivity.hpp can rest on.
#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

struct CoordinateSettings {
  bool on = false;
  float beta1 = 0.99f;   ///< memory of m, in [0, 1]
  float beta2 = 0.9f;    ///< memory of s^2, in [0, 1]
  float least = 1e-12f;  ///< h1, bounds of the variance estimate; > 0
  float most = 1e-2f;    ///< h2, >= h1
  bool literal = false;  ///< the paper's variance of g~ in place of the per-example variance
};

inline constexpr double kLargestShift = 4.0;

/// scale_j = sqrt(s_j) root; `shrink` m_j stands for m_j.
struct CoordinateScale {
  float root = 0.0f;
  float shrink = 1.0f;
};

/// From sum_j s_j and sum_j m_j^2 / s_j.
CUDP_HD CoordinateScale coordinate_scale(double deviations, double ratios) {
  const double shift = sqrt(ratios / deviations);
  return {static_cast<float>(sqrt(deviations)),
          shift > kLargestShift ? static_cast<float>(kLargestShift / shift) : 1.0f};
}

/// What the sums are transformed by, in the order of the parameters they belong to. Null pointers
/// for plain clipping.
struct Transform {
  const float* mean = nullptr;     ///< m, shortened
  const float* inverse = nullptr;  ///< 1 / scale
};

/// w_j^2, or g_j^2 without a transform.
CUDP_HD float transformed_square(const Transform& t, std::int64_t j, float g) {
  const float w = t.mean != nullptr ? (g - t.mean[j]) * t.inverse[j] : g;
  return w * w;
}

/// The squared norm of a dense layer's w is sum_ij (x_i dy_j - m_ij)^2 / scale_ij^2 = A - 2 B + c,
///   A = sum_j dy_j^2 sum_i x_i^2 / scale_ij^2,  B = sum_j dy_j sum_i x_i m_ij / scale_ij^2,
///   c = sum_ij m_ij^2 / scale_ij^2,
/// two products in place of a gradient. The three may cancel. All rounding of A, B and c is below
/// error (sqrt(A) + sqrt(c))^2, which is added: the result is never below the norm it stands for,
/// so clipping by it bounds what it should.
CUDP_HD float dense_square(double a, double b, double c, double error) {
  const double roots = sqrt(a) + sqrt(c);
  return static_cast<float>(a - 2.0 * b + c + error * roots * roots);
}
/// For sums of that many terms: u = 2^-24 for each addition, and some for the factors.
CUDP_HD double dense_square_error(int inputs, int outputs) {
  return (inputs + outputs + 16) * 0x1p-24;
}

// --- CUDA ---

/// parts[2 k], parts[2 k + 1] = sums over some j of s_j and m_j^2 / s_j.
struct CoordinateSums {
  const float* mean;
  const float* deviation;
  std::int64_t n;
  double* parts;  ///< [2 blocks]
};
struct FinishCoordinateSums {
  const double* parts;
  int count;
  CoordinateScale* scale;
};
/// The four arrays [n]; square = 1 / scale^2, product = m / scale^2.
struct CoordinateArrays {
  const float* mean;
  const float* deviation;
  const CoordinateScale* scale;
  std::int64_t n;
  float* centre;  ///< m, shortened
  float* inverse;
  float* square;
  float* product;
};
/// *shift = sum of centre^2 square over n numbers: a dense layer's c.
struct LayerShift {
  const float* centre;
  const float* square;
  std::int64_t n;
  double* shift;
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

inline void validate(const CoordinateSettings& c) {
  expect(c.beta1 >= 0 && c.beta1 <= 1 && c.beta2 >= 0 && c.beta2 <= 1,
         "coordinates: expected beta1 and beta2 in [0, 1]");
  expect(c.least > 0 && c.least <= c.most && c.most < 1e30f,
         "coordinates: expected 0 < h1 <= h2, finite");
}
inline void validate(const CoordinateSums& a) {
  expect(a.mean && a.deviation && a.parts && a.n > 0, "coordinates: expected pointers and n > 0");
}
inline void validate(const FinishCoordinateSums& a) {
  expect(a.parts && a.count > 0 && a.scale, "coordinates: expected pointers and parts");
}
inline void validate(const CoordinateArrays& a) {
  expect(
      a.mean && a.deviation && a.scale && a.n > 0 && a.centre && a.inverse && a.square && a.product,
      "coordinates: expected pointers and n > 0");
}
inline void validate(const LayerShift& a) {
  expect(a.centre && a.square && a.shift && a.n > 0, "coordinates: expected pointers and n > 0");
}
inline void validate(const SquareRows& a) {
  expect(a.x && a.y && a.n > 0, "square: expected pointers and n > 0");
}
inline void validate(const DenseTransformedNorm& a) {
  validate(a.batch);
  expect(a.dy && a.u && a.v && a.shift && a.parts && a.inputs > 0 && a.outputs > 0,
         "dense transformed norm: expected pointers and sizes > 0");
}
inline LaunchShape launch_shape(const CoordinateSums& a) { return strided_shape(a.n / 16); }
inline LaunchShape launch_shape(const FinishCoordinateSums&) {
  return {.grid = {}, .block = {32}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const CoordinateArrays& a) { return strided_shape(a.n); }
inline LaunchShape launch_shape(const LayerShift&) {
  return {.grid = {}, .block = {1024}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const SquareRows& a) { return strided_shape(a.n); }
/// A warp an example.
inline LaunchShape launch_shape(const DenseTransformedNorm& a) {
  return strided_shape(std::int64_t{a.batch.capacity} * 32);
}

}  // namespace cudp
