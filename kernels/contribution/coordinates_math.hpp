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
#include "kernels/common/lanes.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// scale_j = sqrt(s_j) root; `shrink` m_j stands for m_j.
struct CoordinateScale {
  float root = 0.0f;
  float shrink = 1.0f;
};

/// The scale that follows from sum_j s_j and sum_j m_j^2 / s_j.
CUDP_HD CoordinateScale coordinate_scale(double deviations, double ratios) {
  const double shift = sqrt(ratios / deviations);
  return {static_cast<float>(sqrt(deviations)),
          shift > kLargestShift ? static_cast<float>(kLargestShift / shift) : 1.0f};
}

/// The numbers that the sums are transformed by, in the order of the parameters they belong to.
/// Null pointers for plain clipping.
struct Transform {
  const float* mean = nullptr;     ///< m, shortened
  const float* inverse = nullptr;  ///< 1 / scale
};

/// w_j^2, or g_j^2 without a transform.
CUDP_HD float transformed_square(const Transform& t, std::int64_t j, float g) {
  const float w = t.mean != nullptr ? (g - t.mean[j]) * t.inverse[j] : g;
  return w * w;
}

/// w of the number x dy of a dense layer's gradient, by its m and 1 / scale. Its roundings are
/// written out: wherever a kernel makes it anew, it is the same, bit for bit.
CUDP_HD float transformed_product(float x, float dy, float mean, float inverse) {
  return ScalarLanes::fma(x, dy, -mean) * inverse;
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

}  // namespace cudp
