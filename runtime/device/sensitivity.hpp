#pragma once
#include <cstdint>

#include "models/model.hpp"

namespace cudp {

/// What the arithmetic of a backend promises; every engine must be at least this accurate.
struct Arithmetic {
  int float_terms = 16;  ///< clipped gradients added in float32 before the sum goes to double
  int norm_chains = 8;   ///< independent float32 chains that squares are added in
};

/// What the CPU engine promises for most networks; backend.hpp has it for each.
inline constexpr Arithmetic kCpuArithmetic{};
/// In TF32 too: there is no margin for the 2^-11 that an operand errs by, because none would do for
/// terms that cancel. The gradient that is added is the one whose norm was taken, bit for bit
/// (WeightGradientSum in kernels/products/tiled_product.hpp).
inline constexpr Arithmetic kCudaArithmetic{.float_terms = 32};

/// Largest batch of `steps` Poisson batches of the given mean, except with probability `failure`.
/// Chernoff: P(batch >= x) <= exp(-(x ln(x / mean) - x + mean)) for x > mean, summed over the
/// steps. mean > 0, steps >= 1, failure in (0, 1).
std::uint64_t largest_batch(double mean, std::uint64_t steps, double failure);

/// By how much of C rounding can raise the sensitivity above C: adding or removing one example
/// moves the sum that an engine computes by at most C (1 + sensitivity_rounding_error) in L2.
///
/// u = 2^-24. Norms: squares of one layer's n parameters, added in k chains, are off by at most
/// (n / k + k + 8) u, the norm by half of that; 2^-13 covers whatever is smaller (factors, the
/// roots, outer products). So |f_i g_i| <= C (1 + e), e the norm's error. Sum: a clipped gradient
/// meets at most t = float_terms additions in float32, its own product, the rounding to the grid
/// that makes double sums exact, and the final rounding to float: error at most (t + 3) u |f_i g_i|
/// in each coordinate, over the batch (t + 3) u B C (1 + e) in L2. Neighbouring data sets can
/// differ by that error twice over, because one more example shifts the groups of all that follow:
///   rounding error = (1 + e) (1 + 2 (t + 3) u B) - 1.
///
/// Fused kernels round every clipped gradient once, to a grid (kernels/fused/fused.hpp), and add
/// without error: an example adds the same in both data sets, and the rounding error is e + sqrt(d)
/// 2^-26 and the final rounding. That is less, and is not treated apart.
///
/// Gradients that are transformed first (kernels/clipping/coordinates.hpp), with |m / scale| <=
/// shift: e is the error of the norm of w (a dense layer's is never too small). A partial sum of f
/// g has the numbers of f w and f m / scale, and three more roundings take it to the transformed
/// side:
///   rounding error = (1 + e) (1 + 2 (t + 6) u B (1 + shift)) - 1.
double sensitivity_rounding_error(const Network& network, std::uint64_t largest_batch,
                                  const Arithmetic& arithmetic, double shift = 0.0);

}  // namespace cudp
