#pragma once
// Linear models on CUDA: the steps of linear_model.hpp, on the same tiles. Sums are of whole
// multiples of a grid in 64-bit integers: exact, so they do not depend on blocks nor on their
// order, and are what the CPU has of the same numbers.
//
// A number on the grid is at most 2^24 and its rounding (linear_grid), so 64 of them fit 32 bits,
// and 2^28 examples 53.
#include <cmath>
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_model.hpp"

namespace cudp {

/// slopes[i] = d loss / d score of example i, shrunk so that |slope| norm <= max_norm; 0 where the
/// score is NaN or the example is not there.
struct LinearSlopes {
  const float* scores;
  const float* signs;  ///< 1 or -1, the label; 0: not there
  const float* norms;  ///< |x| rounded up, > 0
  float* slopes;
  std::int64_t n;  ///< places, of the last tile too
  Loss loss;       ///< logistic or hinge
  float max_norm;
};

/// total[j] += sum over examples of slopes x[j], each product rounded to a multiple of the grid, in
/// units of it. No product is above 2^24 (1 + 2^-21) units.
struct LinearSum {
  const float* features;  ///< [tiles, d, 16], finite
  const float* slopes;    ///< [tiles, 16], finite
  FixedPoint* total;      ///< [d]
  std::int64_t tiles;
  int d;
  float inverse_grid;
};
inline constexpr int kSumTiles = 16;  // that a warp adds up in 32 bits

/// total[k] += sum over examples of min(loss(score - steps[k] along), max_loss), each rounded to a
/// multiple of the grid, in units of it. A loss that is NaN counts as max_loss.
struct LinearLossSums {
  const float* scores;
  const float* along;  ///< scores of the direction
  const float* signs;
  const float* steps;  ///< [count]
  FixedPoint* total;   ///< [count]
  std::int64_t n;      ///< places, of the last tile too
  int count;
  Loss loss;
  float max_loss;
  float inverse_grid;
};

/// Copies the listed examples to tiles of their own; the last tile is filled up with examples that
/// are not there.
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
inline void validate(const LinearSlopes& a) {
  expect(a.scores && a.signs && a.norms && a.slopes && a.n > 0,
         "linear slopes: expected pointers and n > 0");
  expect(linear_checks::has_margin(a.loss) && linear_checks::positive(a.max_norm),
         "linear slopes: expected logistic or hinge loss and a clipping norm");
}
inline void validate(const LinearSum& a) {
  expect(a.features && a.slopes && a.total && a.tiles > 0 && a.d > 0,
         "linear sum: expected pointers, tiles and d > 0");
  expect(linear_checks::positive(a.inverse_grid), "linear sum: expected a grid that float holds");
}
inline void validate(const LinearLossSums& a) {
  expect(a.scores && a.along && a.signs && a.steps && a.total && a.n > 0 && a.count > 0 &&
             a.count < 65536,
         "linear losses: expected pointers, n > 0 and 1 to 65535 steps");
  expect(linear_checks::has_margin(a.loss) && linear_checks::positive(a.max_loss) &&
             linear_checks::positive(a.inverse_grid),
         "linear losses: expected logistic or hinge loss, a bound and a grid that float holds");
}
inline void validate(const LinearGather& a) {
  expect(a.features && a.signs && a.norms && a.examples && a.to_features && a.to_signs &&
             a.to_norms && a.count > 0 && a.d > 0,
         "linear gather: expected pointers, examples and d > 0");
}

inline LaunchShape launch_shape(const LinearScores& a) {
  return strided_shape((a.end - a.begin) * kTile);
}
inline LaunchShape launch_shape(const LinearSlopes& a) { return strided_shape(a.n); }
/// A warp for 8 features of 16 tiles.
inline LaunchShape launch_shape(const LinearSum& a) {
  const std::int64_t warps = (a.tiles + kSumTiles - 1) / kSumTiles * ((a.d + 7) / 8);
  return strided_shape(warps * 32);
}
/// Eight examples a thread, and a row of blocks for every step.
inline LaunchShape launch_shape(const LinearLossSums& a) {
  LaunchShape s = strided_shape((a.n + 7) / 8);
  s.grid.y = static_cast<unsigned>(a.count);
  return s;
}
inline LaunchShape launch_shape(const LinearGather& a) {
  return strided_shape(linear_tiles(a.count) * a.d * kTile);
}

}  // namespace cudp
