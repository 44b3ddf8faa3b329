#pragma once

namespace cudp::verify {

/// Factors by which a stated standard deviation may differ from the checker's formula: at most
/// kFloatUpperTolerance times the formula if it was rounded up from double to float, at least
/// kProductLowerTolerance times if it is a rounded product.
inline constexpr double kFloatUpperTolerance = 1.0 + 0x1p-22;
inline constexpr double kProductLowerTolerance = 1.0 - 0x1p-51;
/// Factor by which code on the host may increase a standard deviation, so that rounding never
/// decreases it.
inline constexpr double kHostUpperTolerance = 1.0 + 1e-9;

}  // namespace cudp::verify
