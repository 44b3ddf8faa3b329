#pragma once
// Linear models with one output on the whole data set at once. The score of an example is x . w,
// the gradient of its loss is c x with a number c, so nothing per example is larger than a float:
// sums of clipped gradients are X^T c, and the losses along a line w - a d need X w and X d alone.
//
// Examples lie in tiles of 16: features [tiles, d, 16], scores, labels and norms [tiles, 16]. What
// fills up the last tile has label 0, which means that it is not there; so has an example with a
// feature that is not finite.
//
// Sums are of multiples of a grid, so they are exact in double and depend on no order.
#include <cstdint>

#include "kernels/layers/loss.hpp"

namespace cudp {

inline constexpr int kTile = 16;

/// scores[t, l] = sum over j of features[t, j, l] w[j], for tiles begin..end.
struct LinearScores {
  const float* features;
  const float* w;  ///< [d]
  float* scores;
  std::int64_t begin, end;
  int d;
};

/// total[j, l] += sum over tiles of c[t, l] features[t, j, l], each product rounded to a multiple
/// of the grid, in units of it; c = d loss / d score, shrunk so that |c| norm <= max_norm.
/// A score that is not finite has c = 0. Losses: logistic or hinge.
struct LinearGradient {
  const float* features;
  const float* scores;
  const float* signs;  ///< 1 or -1, the label; 0: not there
  const float* norms;  ///< |x| rounded up
  double* total;       ///< [d, 16]
  std::int64_t begin, end;
  int d;
  Loss loss;
  float max_norm;  ///< finite, > 0
  double inverse_grid;
};

/// total[k, l] += sum over tiles of min(loss(score - step[k] slope), max_loss), each loss rounded
/// to a multiple of the grid, in units of it. A loss that is NaN counts as max_loss.
struct LinearLosses {
  const float* scores;
  const float* slopes;
  const float* signs;
  const float* steps;  ///< [count]
  double* total;       ///< [count, 16]
  std::int64_t begin, end;
  int count;
  Loss loss;
  float max_loss;  ///< > 0; infinite: losses are not clipped
  double inverse_grid;
};

}  // namespace cudp
