#pragma once
// Coordinate-wise adaptive clipping (AdaCliP, Pichapati et al. 2019). Every coordinate j of a
// gradient g has a mean m_j and a standard deviation s_j, both estimated from released sums. With
//   scale_j = sqrt(s_j) sqrt(sum_l s_l),   w = (g - m) / scale,
// w is clipped to norm 1. W is the sum of w over the batch plus noise. The mean gradient is
// estimated as g~ = scale W / b + m, with b the expected batch size.
//
// The rounding error of w grows with |m / scale|. If |m / scale| exceeds kLargestShift, m is
// multiplied by a factor below 1 that makes it equal to kLargestShift. The factor is a function of
// released numbers. runtime/device/sensitivity.hpp uses kLargestShift as the bound on |m / scale|
// (ContributionBound::shift).
#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// The two numbers from which coordinate-wise clipping gets the scale and the centre of every
/// coordinate j of the gradient: scale_j = sqrt(s_j) root, and centre_j = shrink m_j is subtracted
/// from the coordinate. m_j, s_j: its mean and standard deviation. shrink <= 1 keeps the norm of
/// centre / scale below a fixed limit.
struct CoordinateScale {
  float root = 0.0f;
  float shrink = 1.0f;
};

/// Returns the numbers that determine the scale of all coordinates. deviations = sum_j s_j, ratios
/// = sum_j m_j^2 / s_j, over all coordinates j of the gradient, with mean m_j and standard
/// deviation s_j.
CUDP_HD CoordinateScale coordinate_scale(double deviations, double ratios) {
  const double shift = sqrt(ratios / deviations);
  return {static_cast<float>(sqrt(deviations)),
          shift > kLargestShift ? static_cast<float>(kLargestShift / shift) : 1.0f};
}

/// The transform w = (g - mean) * inverse of a gradient g before it is clipped (coordinate-wise
/// clipping). Both arrays have one element per parameter, in the order of the parameters. Null
/// pointers mean that there is no transform, w = g.
struct Transform {
  const float* mean = nullptr;     ///< mean m_j of coordinate j, times CoordinateScale::shrink
  const float* inverse = nullptr;  ///< 1 / scale
};

/// Returns the square of coordinate j of a gradient after the transform before clipping: w_j^2,
/// with w_j = (g - mean[j]) * inverse[j] and g that coordinate of the gradient. Returns g^2 if t
/// has null pointers.
CUDP_HD float transformed_square(const Transform& t, std::int64_t j, float g) {
  const float w = t.mean != nullptr ? (g - t.mean[j]) * t.inverse[j] : g;
  return w * w;
}

/// Returns w = (x dy - mean) * inverse for one weight of a dense layer. The weight's gradient is
/// the product x dy of the input x and the output's gradient dy; inverse = 1 / scale. The order of
/// the roundings is fixed, so that every kernel that computes this number again gets the same bits.
CUDP_HD float transformed_product(float x, float dy, float mean, float inverse) {
  return ScalarLanes::fma(x, dy, -mean) * inverse;
}

/// Returns the squared norm of w = (gradient - m) / scale for one example's gradient x_i dy_j of a
/// dense layer,
///   sum_ij (x_i dy_j - m_ij)^2 / scale_ij^2 = A - 2 B + c,
///   A = sum_j dy_j^2 sum_i x_i^2 / scale_ij^2,  B = sum_j dy_j sum_i x_i m_ij / scale_ij^2,
///   c = sum_ij m_ij^2 / scale_ij^2.
/// So two matrix products suffice, and no gradient is formed. a, b, c: the computed A, B and c.
/// They may cancel, but the error of a - 2 b + c is below error (sqrt(A) + sqrt(c))^2, which the
/// function adds. The result is therefore never below the true squared norm, and clipping with it
/// is safe.
CUDP_HD float dense_square(double a, double b, double c, double error) {
  const double roots = sqrt(a) + sqrt(c);
  return static_cast<float>(a - 2.0 * b + c + error * roots * roots);
}
/// Returns the argument `error` of dense_square(), a relative rounding error: 2^-24 for each
/// addition in the longest sum, and for 16 more operations. inputs, outputs: numbers of inputs and
/// outputs of the dense layer.
CUDP_HD double dense_square_error(int inputs, int outputs) {
  return (inputs + outputs + 16) * 0x1p-24;
}

}  // namespace cudp
