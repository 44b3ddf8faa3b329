#pragma once

namespace cudp {

inline constexpr int kMaxFourierStages = 16;

/// A discrete Fourier transform of n numbers, forward: X[k] = sum_j x[j] exp(-2 pi i j k / n), as
/// stages whose radices multiply to n (Stockham's order, which sorts as it goes).
struct FourierPlan {
  int n = 0;
  int stages = 0;
  int radix[kMaxFourierStages] = {};
  /// Pairs (cos, sin). For each stage but the last, with m = (numbers left) / radix, the factors
  /// exp(-2 pi i p k / (radix m)), p = 0..m-1, k = 1..radix-1, stage after stage.
  const float* twiddles = nullptr;
  /// exp(-2 pi i k / radix), k = 0..radix-1, for each stage whose radix is not 2 to 6 or 8.
  const float* roots[kMaxFourierStages] = {};
};

}  // namespace cudp
