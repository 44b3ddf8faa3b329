#pragma once
// Coordinate-wise adaptive clipping (AdaCliP, Pichapati et al. 2019). Every coordinate j of a
// gradient has a mean m_j and a standard deviation s_j, both estimated from released sums. With
//   scale_j = sqrt(s_j) sqrt(sum_l s_l),   w = (g - m) / scale,
// w is clipped to norm 1, summed and noised to W; then g~ = scale W / b + m.
//
// The rounding error of w grows with |m / scale|. If that exceeds kLargestShift, m is multiplied by
// a factor below 1 that makes it equal. The factor is a function of released numbers, and the
// resulting bound is the one that runtime/device/sensitivity.hpp uses.
#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// Scale of all coordinates: scale_j = sqrt(s_j) root. shrink m_j is used in place of m_j.
struct CoordinateScale {
  float root = 0.0f;
  float shrink = 1.0f;
};

/// Returns the scale. deviations = sum_j s_j, ratios = sum_j m_j^2 / s_j.
CUDP_HD CoordinateScale coordinate_scale(double deviations, double ratios) {
  const double shift = sqrt(ratios / deviations);
  return {static_cast<float>(sqrt(deviations)),
          shift > kLargestShift ? static_cast<float>(kLargestShift / shift) : 1.0f};
}

/// Transform of each coordinate, w = (g - mean) inverse, in the order of the parameters. Null
/// pointers mean plain clipping.
struct Transform {
  const float* mean = nullptr;     ///< m_j shrink
  const float* inverse = nullptr;  ///< 1 / scale
};

/// Returns w_j^2, or g_j^2 without a transform.
CUDP_HD float transformed_square(const Transform& t, std::int64_t j, float g) {
  const float w = t.mean != nullptr ? (g - t.mean[j]) * t.inverse[j] : g;
  return w * w;
}

/// Returns w for the number x dy of a dense layer's gradient, given its m and 1 / scale. The order
/// of its roundings is fixed, so that every kernel that recomputes it gets the same bits.
CUDP_HD float transformed_product(float x, float dy, float mean, float inverse) {
  return ScalarLanes::fma(x, dy, -mean) * inverse;
}

/// Returns the squared norm of a dense layer's w,
///   sum_ij (x_i dy_j - m_ij)^2 / scale_ij^2 = A - 2 B + c,
///   A = sum_j dy_j^2 sum_i x_i^2 / scale_ij^2,  B = sum_j dy_j sum_i x_i m_ij / scale_ij^2,
///   c = sum_ij m_ij^2 / scale_ij^2,
/// which takes two matrix products and no gradient. The three terms may cancel. The rounding error
/// of A, B and c together is below error (sqrt(A) + sqrt(c))^2, which is added. The result is
/// therefore never below the true squared norm, and clipping with it is safe.
CUDP_HD float dense_square(double a, double b, double c, double error) {
  const double roots = sqrt(a) + sqrt(c);
  return static_cast<float>(a - 2.0 * b + c + error * roots * roots);
}
/// Relative error bound for dense_square with sums of that many terms: 2^-24 for each addition, and
/// 16 more for the factors.
CUDP_HD double dense_square_error(int inputs, int outputs) {
  return (inputs + outputs + 16) * 0x1p-24;
}

}  // namespace cudp
