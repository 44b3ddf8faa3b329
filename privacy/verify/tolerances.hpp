#pragma once

namespace cudp::verify {

/// Factors by which a standard deviation may differ from its formula: kFloatAbove if a double was
/// rounded up to a float, kProduct for rounding in a product.
inline constexpr double kFloatAbove = 1.0 + 0x1p-22;
inline constexpr double kProduct = 1.0 - 0x1p-51;
/// Factor by which code on the host may increase a standard deviation, so that rounding never
/// decreases it.
inline constexpr double kHostAbove = 1.0 + 1e-9;

}  // namespace cudp::verify
