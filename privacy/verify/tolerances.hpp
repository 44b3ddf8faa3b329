#pragma once

namespace cudp::verify {

/// Factors by which a standard deviation may differ from its formula: kFloatUpperTolerance if a
/// double was rounded up to a float, kProductLowerTolerance for rounding in a product.
inline constexpr double kFloatUpperTolerance = 1.0 + 0x1p-22;
inline constexpr double kProductLowerTolerance = 1.0 - 0x1p-51;
/// Factor by which code on the host may increase a standard deviation, so that rounding never
/// decreases it.
inline constexpr double kHostUpperTolerance = 1.0 + 1e-9;

}  // namespace cudp::verify
