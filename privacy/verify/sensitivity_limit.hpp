#pragma once

namespace cudp::verify {

/// Size of one example's gradient. The bound on its rounding errors (sensitivity_limit()) grows
/// with it. Both members count only elements that can differ from 0 in one example's gradient.
struct GradientSize {
  double all = 0.0;             ///< number of elements in all tensors together
  double largest_tensor = 0.0;  ///< number in the tensor that has most of them
};

/// Returns the largest sensitivity that a certificate may state for gradients of this size
/// (`size`), clipped to norm C (clip_norm). is_transformed: gradients are transformed first
/// (AdaCliP).
///
/// The least accurate engine adds the squares of a tensor's n numbers in float32, in 8 independent
/// sums. Let u = 2^-24. The sum of squares has a relative error of at most (n / 8 + 16) u, and the
/// norm half of that, but no less than 2^-13 is assumed. Four roundings follow; for a transformed
/// gradient, whose shift is at most 4 C, they amount to 40. Each of the d numbers of the gradient
/// is rounded to a multiple of a grid of at most 2^-20 C:
///   C ((1 + max(2^-13, (n / 8 + 16) u / 2)) (1 + 4 u) + 2^-21 sqrt(d)).
/// runtime/device/sensitivity.hpp proves it, with the accuracy of each engine. This formula is the
/// checker's own.
double sensitivity_limit(double clip_norm, const GradientSize& size, bool is_transformed);

}  // namespace cudp::verify
