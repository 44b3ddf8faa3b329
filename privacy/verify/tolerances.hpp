#pragma once

namespace cudp::verify {

/// Tolerances of a standard deviation: the factor for a float rounded up from a double, and the
/// one for roundings in the product.
inline constexpr double kFloatAbove = 1.0 + 0x1p-22;
inline constexpr double kProduct = 1.0 - 0x1p-51;
/// Factor by which the host may increase a standard deviation, so that rounding never decreases it.
inline constexpr double kHostAbove = 1.0 + 1e-9;

}  // namespace cudp::verify
