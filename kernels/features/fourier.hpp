#pragma once

namespace cudp {

inline constexpr int kMaxFourierStages = 16;

/// Factorisation and tables of a forward discrete Fourier transform of n numbers, X[k] = sum_j x[j]
/// exp(-2 pi i j k / n). The product of its stages' radices is n (Stockham's order, whose output
/// needs no reordering).
struct FourierPlan {
  int n = 0;
  int stages = 0;
  int radix[kMaxFourierStages] = {};
  /// Twiddle factors as pairs (cos, sin), stage after stage. Every stage but the last has exp(-2 pi
  /// i p k / (radix m)) for p = 0..m-1, k = 1..radix-1, with m = (length of the signals that enter
  /// the stage) / radix.
  const float* twiddles = nullptr;
  /// Roots of unity exp(-2 pi i k / radix), k = 0..radix-1, of each stage whose radix is not 2 to 6
  /// or 8.
  const float* roots[kMaxFourierStages] = {};
};

}  // namespace cudp
