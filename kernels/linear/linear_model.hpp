#pragma once
// Linear models with one output, on the whole data set at once. The score of an example x is x . w,
// with w the weights. The gradient of its loss is c x, with c the derivative of the loss with
// respect to the score. So kernels store one float per example, c or the score, and no gradients:
//   - The sum of clipped gradients is X^T c, with X the matrix of all examples.
//   - The losses at the weights w - a d, for several a and one direction d, need only X w and X d.
//
// Examples are stored in tiles of 16: features [tiles, d, 16], scores, labels and norms [tiles,
// 16], with d the number of features. The unused slots of the last tile have label 0, which marks
// an absent example. An example with a non-finite feature is also marked absent.
//
// Summands are multiples of a grid, so sums are exact in double and independent of the order.
#include <cmath>
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/layers/kinds.hpp"
#include "kernels/linear/sign_weights.hpp"

namespace cudp {

/// Number of examples per tile. The features of a linear model's examples are stored in tiles,
/// [tiles, features, examples of a tile].
inline constexpr int kTile = 16;

/// Computes the scores x . w of the examples in tiles begin .. end - 1 (a tile is 16 examples):
/// scores[t, l] = sum over features j of features[t, j, l] * w[j], for the example in slot l of
/// tile t.
struct LinearScores {
  const float* features;
  const float* w;  ///< [d]
  float* scores;
  std::int64_t begin, end;
  int d;
};

/// Adds the clipped gradients of the examples in tiles to a sum: total[j, l] += sum over tiles t of
/// c[t, l] * features[t, j, l], with j the feature and l the example's slot in its tile. c is the
/// derivative of the example's weighted loss (logistic or hinge) with respect to its score, reduced
/// so that |c| |x| <= clip_norm; |x| is given as `norms`. c = 0 if the score is not finite. Each
/// product is rounded to a multiple of the grid, 1 / inverse_grid, and counts as an integer number
/// of grid steps.
struct LinearGradient {
  const float* features;
  const float* scores;
  const float* signs;  ///< label of each example, 1 or -1; 0 for an absent one
  const float* norms;  ///< norm |x| of each example x, rounded up
  double* total;       ///< [d, 16]
  std::int64_t begin, end;
  int d;
  Loss loss;
  float clip_norm;  ///< finite, > 0
  double inverse_grid;
  SignWeights weights = {};
};

/// Adds the clipped losses of all examples, for several weight vectors on a line at once. Weight
/// vector k is start - steps[k] * direction. total[k, l] += sum over tiles of min(weight *
/// loss(score - steps[k] * along), max_loss), with l the example's slot in its tile. `scores` are
/// the scores at the start, `along` those of the direction. Each loss is rounded to a multiple of 1
/// / inverse_grid, and counts as an integer number of these steps. A loss that is NaN counts as
/// max_loss.
struct LinearLosses {
  const float* scores;
  const float* along;
  const float* signs;
  const float* steps;  ///< [count]
  double* total;       ///< [count, 16]
  std::int64_t begin, end;
  int count;
  Loss loss;
  float max_loss;  ///< > 0; infinite: losses are not clipped
  double inverse_grid;
  SignWeights weights = {};
};

// --- CUDA ---
//
// The same steps on the same tiles. Sums are of whole multiples of a grid in 64-bit integers, so
// they are exact, independent of the blocks and their order, and equal to the CPU's sums of the
// same numbers.
//
// A summand is at most 2^24 grid steps plus its rounding (linear_grid()). So a sum of 64 summands,
// which a lane of linear_sum_kernel adds, fits into 32 bits, and a sum over 2^28 examples into the
// 53 bits of a double.

/// Computes the clipped derivative of each example i for LinearSum: derivatives[i] is that of its
/// weighted loss with respect to its score, reduced so that |derivatives[i]| norms[i] <= clip_norm.
/// It is 0 if the score is NaN, or if slot i has no example.
struct LinearDerivatives {
  const float* scores;
  const float* signs;  ///< label, 1 or -1; 0: absent
  const float* norms;  ///< |x| rounded up, > 0
  float* derivatives;
  std::int64_t n;  ///< number of slots, including the last tile's unused ones
  Loss loss;       ///< logistic or hinge
  float clip_norm;
  SignWeights weights = {};
};

/// Adds the clipped gradients of the examples to a sum: total[j] += sum over examples of derivative
/// * x[j], with the derivatives that LinearDerivatives computes. Each product is rounded to a
/// multiple of the grid, 1 / inverse_grid, and counts as an integer number of grid steps. No
/// product exceeds 2^24 (1 + 2^-21) grid steps.
struct LinearSum {
  const float* features;     ///< [tiles, d, 16], finite
  const float* derivatives;  ///< [tiles, 16], finite
  FixedPoint* total;         ///< [d]
  std::int64_t tiles;
  int d;
  float inverse_grid;
};
inline constexpr int kSumTiles = 16;  // tiles that a warp adds in 32 bits

/// Adds the clipped losses of all examples, for several weight vectors on a line at once. Weight
/// vector k is start - steps[k] * direction. total[k] += sum over examples of min(weight *
/// loss(score - steps[k] * along), max_loss). `scores` are the scores at the start, `along` those
/// of the direction. Each loss is rounded to a multiple of 1 / inverse_grid, and counts as an
/// integer number of these steps. A loss that is NaN counts as max_loss.
struct LinearLossSums {
  const float* scores;
  const float* along;  ///< scores of the direction
  const float* signs;
  const float* steps;  ///< [count]
  FixedPoint* total;   ///< [count]
  std::int64_t n;      ///< number of slots, including the last tile's unused ones
  int count;
  Loss loss;
  float max_loss;
  float inverse_grid;
  SignWeights weights = {};
};

/// Copies the listed examples (e.g. a batch) to new tiles of 16 examples. The slots of the last
/// tile that are left over are marked as having no example.
struct LinearGather {
  const float* features;  ///< [.., d, 16]
  const float* signs;
  const float* norms;
  const std::uint32_t* examples;  ///< [count]
  std::int64_t count;
  float* to_features;  ///< [ceil(count / 16), d, 16]
  float* to_signs;
  float* to_norms;
  int d;
};

inline std::int64_t linear_tiles(std::int64_t examples) { return (examples + kTile - 1) / kTile; }

namespace linear_checks {
inline bool positive(float x) { return x > 0.0f && std::isfinite(x); }
inline bool has_margin(Loss loss) { return loss == Loss::logistic || loss == Loss::hinge; }
}  // namespace linear_checks

inline void validate(const LinearScores& a) {
  expect(a.features && a.w && a.scores && a.begin >= 0 && a.end > a.begin && a.d > 0,
         "linear scores: expected pointers, tiles and d > 0");
}
inline void validate(const LinearDerivatives& a) {
  expect(a.scores && a.signs && a.norms && a.derivatives && a.n > 0,
         "linear derivatives: expected pointers and n > 0");
  expect(linear_checks::has_margin(a.loss) && linear_checks::positive(a.clip_norm),
         "linear derivatives: expected logistic or hinge loss and a clipping norm");
}
inline void validate(const LinearSum& a) {
  expect(a.features && a.derivatives && a.total && a.tiles > 0 && a.d > 0,
         "linear sum: expected pointers, tiles and d > 0");
  expect(linear_checks::positive(a.inverse_grid), "linear sum: expected a grid in float's range");
}
inline void validate(const LinearLossSums& a) {
  expect(a.scores && a.along && a.signs && a.steps && a.total && a.n > 0 && a.count > 0 &&
             a.count < 65536,
         "linear losses: expected pointers, n > 0 and 1 to 65535 steps");
  expect(linear_checks::has_margin(a.loss) && linear_checks::positive(a.max_loss) &&
             linear_checks::positive(a.inverse_grid),
         "linear losses: expected logistic or hinge loss, a bound and a grid in float's range");
}
inline void validate(const LinearGather& a) {
  expect(a.features && a.signs && a.norms && a.examples && a.to_features && a.to_signs &&
             a.to_norms && a.count > 0 && a.d > 0,
         "linear gather: expected pointers, examples and d > 0");
}

inline LaunchShape launch_shape(const LinearScores& a) {
  return strided_shape((a.end - a.begin) * kTile);
}
inline LaunchShape launch_shape(const LinearDerivatives& a) { return strided_shape(a.n); }
/// Returns a launch shape with one warp for each 8 features of 16 tiles.
inline LaunchShape launch_shape(const LinearSum& a) {
  const std::int64_t warps = (a.tiles + kSumTiles - 1) / kSumTiles * ((a.d + 7) / 8);
  return strided_shape(warps * 32);
}
/// Returns a launch shape with eight examples per thread; grid.y is the index k of the point on the
/// line (steps[k]).
inline LaunchShape launch_shape(const LinearLossSums& a) {
  LaunchShape s = strided_shape((a.n + 7) / 8);
  s.grid.y = static_cast<unsigned>(a.count);
  return s;
}
inline LaunchShape launch_shape(const LinearGather& a) {
  return strided_shape(linear_tiles(a.count) * a.d * kTile);
}

}  // namespace cudp
