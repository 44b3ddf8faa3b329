#pragma once

namespace cudp {

/// Maximum number of stages of a Fourier transform, one for each factor of its length.
inline constexpr int kMaxFourierStages = 16;

/// Factors of n, and tables, for a forward discrete Fourier transform of n numbers, X[k] = sum_j
/// x[j] exp(-2 pi i j k / n). The transform is computed in stages, one for each factor (radix); the
/// product of the radices is n. The stages are in Stockham's order, whose output needs no
/// reordering.
struct FourierPlan {
  int n = 0;
  int stages = 0;
  int radix[kMaxFourierStages] = {};
  /// Twiddle factors as pairs (cos, sin), stage after stage. A stage of radix r that transforms
  /// signals of r m numbers has exp(-2 pi i p k / (r m)) for p = 0..m-1, k = 1..r-1. The last stage
  /// (m = 1) has none.
  const float* twiddles = nullptr;
  /// Roots of unity exp(-2 pi i k / radix), k = 0..radix-1, for each stage; null for stages with
  /// radix 2, 3, 4, 5, 6 or 8, which have code of their own.
  const float* roots[kMaxFourierStages] = {};
};

}  // namespace cudp
