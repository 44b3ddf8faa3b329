#pragma once
#include <cstdint>

#include "kernels/contribution/contribution.hpp"
#include "models/model.hpp"

namespace cudp {

/// Describes in which order a backend adds up the squares of a gradient's elements to compute its
/// norm. The bound on the rounding error of the norm is computed from this description; an engine
/// may be more accurate, but must not be less.
struct Arithmetic {
  int norm_chains = 8;  ///< number of independent float32 sums to which squares are added
  /// Squares are added in float32 within blocks of this length, and the sums of the blocks are
  /// added in double. 0: all squares of a tensor are one block.
  int norm_block = 0;
};

/// The order in which CPU kernels add up the squares of a gradient.
inline constexpr Arithmetic kCpuArithmetic{.norm_chains = 8, .norm_block = 1024};
/// How CUDA adds up the squares of a gradient, also if products are computed in TF32. The error
/// bound needs no term for the rounding of products to TF32 (2^-11). The gradient whose norm is
/// computed is, bit for bit, the one that is added to the sum, so its own error does not matter. (A
/// bound on that error would not help: if the summands of a product cancel, the relative error has
/// no limit.)
inline constexpr Arithmetic kCudaArithmetic{};

/// Returns the smallest clipping norm C for which the bound that sensitivity_rounding_error()
/// returns is valid.
///
/// Squares of numbers below 2^-63 lose bits in float32, or become 0, so the squared norm of d
/// numbers may be too small by d 2^-126. This error must be at most 2^-14 of the squared clipping
/// bound, which is C^2, or C^2 / layers for a single layer. (For a dense layer this condition does
/// not suffice, because the error of |dy|^2 is multiplied by |x|^2. There the largest possible
/// error is added to |dy|^2 instead.) Since norms are below 2^64, the clip factors C / norm are
/// then normal float32 numbers, too.
double min_clip_norm(const Network& network, Clipping clipping);

/// Returns an upper bound on the relative increase of the sensitivity by rounding errors: adding or
/// removing one example changes the sum that an engine computes by at most C (1 + result) in L2,
/// where C is the clipping norm. This holds whatever the other examples are, because each
/// contribution is rounded to the grid by itself, and the integers are added without error
/// (kernels/common/fixed_point.hpp). arithmetic: how the engine adds up the squares of a norm.
/// shift: for transformed gradients, upper bound on |m / scale|; otherwise 0.
///
/// Proof. Let u = 2^-24. Norms: the sum of squares of one layer's n parameters, added in k chains,
/// has a relative error of at most (n / k + k + 8) u, and the norm half of that. A minimum of 2^-13
/// covers the smaller errors: of factors, roots and outer products, and the loss of squares below
/// 2^-126 if C >= min_clip_norm. So f_i g_i, the gradient of example i times its clipping factor,
/// has norm <= C (1 + e), with e the relative error of |g_i|. Weighting and the product with the
/// grid take 4 roundings. Let d be the number of elements of a gradient that can differ from 0
/// (ParameterTensor::touched: in a trainable embedding, those of the text's own words). Each is
/// rounded to the nearest multiple of the grid g, which changes a vector by at most sqrt(d) g / 2:
///   rounding error = (1 + e) (1 + 4 u) + sqrt(d) g / (2 C) - 1,  g <= C / kMinUnits.
///
/// Transformed gradients w = (g_i - m) / scale (kernels/contribution/coordinates_math.hpp): e is
/// the relative error of |w|. For a dense layer, the computed norm of w is never too small
/// (dense_square()). w is computed again for the sum. Its roundings are those of numbers as large
/// as |w| + |m / scale|, and |m / scale| <= shift, so 8 u (1 + shift) replaces 4 u.
double sensitivity_rounding_error(const Network& network, const Arithmetic& arithmetic,
                                  double shift = 0.0);

/// Returns the L2 sensitivity to which the noise is scaled: the largest change of the sum that an
/// engine computes if one example is added or removed, including the effects of all roundings.
/// bound: bounds on one example's contribution before rounding. arithmetic: how the engine adds up
/// the squares of a norm.
double sensitivity(const ContributionBound& bound, const Network& network,
                   const Arithmetic& arithmetic);

}  // namespace cudp
