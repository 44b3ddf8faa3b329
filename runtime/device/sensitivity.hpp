#pragma once
#include <cstdint>

#include "kernels/contribution/contribution.hpp"
#include "models/model.hpp"

namespace cudp {

/// How a backend takes norms; every engine must be at least this accurate.
struct Arithmetic {
  int norm_chains = 8;  ///< independent float32 chains that squares are added in
  /// Squares that are added in float32, their sums in double; 0: all of a tensor's.
  int norm_block = 0;
};

inline constexpr Arithmetic kCpuArithmetic{.norm_chains = 8, .norm_block = 1024};
/// In TF32 too: there is no margin for the 2^-11 that an operand errs by, because none would do for
/// terms that cancel. The gradient that is added is the one whose norm was taken, bit for bit
/// (WeightGradientSum in kernels/products/tiled_product.hpp).
inline constexpr Arithmetic kCudaArithmetic{};

/// The least clipping norm for which sensitivity_rounding_error holds. Squares of numbers below
/// 2^-63 have few bits in float32, or none, so that d of them may lack d 2^-126 in a squared norm:
/// that is to be at most 2^-14 of the squared bound, C^2 or a layer's own C^2 / layers. (A dense
/// layer's |dy|^2, which |x|^2 multiplies, has it added in full: dense_squared_norm.) Then factors
/// C / norm are normal numbers too, since norms are below 2^64.
double least_clip_norm(const Network& network, Clipping clipping);

/// The share of C by which rounding can raise the sensitivity above C: adding or removing one
/// example moves the sum that an engine computes by at most C (1 + sensitivity_rounding_error) in
/// L2, whatever the other examples are: each is rounded to the grid by itself, and integers are
/// added without error (kernels/common/fixed_point.hpp).
///
/// u = 2^-24. Norms: squares of one layer's n parameters, added in k chains, are off by at most
/// (n / k + k + 8) u, the norm by half of that; 2^-13 covers whatever is smaller (factors, the
/// roots, outer products, and what squares below 2^-126 lack where C >= least_clip_norm). So |f_i
/// g_i| <= C (1 + e), e the norm's error. Weighing and the product with the grid take 4 roundings.
/// Each of the d numbers of a gradient that can be other than 0 (ParameterTensor::touched: a
/// trainable embedding's are those of the text's own words) is rounded to the nearest multiple of
/// the grid g, which moves a vector by at most sqrt(d) g / 2:
///   rounding error = (1 + e) (1 + 4 u) + sqrt(d) g / (2 C) - 1,  g <= C / kMinUnits.
///
/// Gradients that are transformed first (kernels/contribution/coordinates_math.hpp), with |m /
/// scale| <= shift: e is the error of the norm of w (a dense layer's is never too small), and w is
/// made again for the sum, with roundings of numbers as large as |w| + |m / scale|: 8 u (1 + shift)
/// for 4 u.
double sensitivity_rounding_error(const Network& network, const Arithmetic& arithmetic,
                                  double shift = 0.0);

/// The sensitivity that noise is scaled to: no example moves a sum of such contributions by more,
/// in L2.
double sensitivity(const ContributionBound& bound, const Network& network,
                   const Arithmetic& arithmetic);

}  // namespace cudp
