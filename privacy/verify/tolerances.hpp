#pragma once

namespace cudp::verify {

/// Limits of the ratio stated / computed for a standard deviation that a certificate states and a
/// checker computes again. kFloatUpperTolerance: upper limit if the stated number was rounded up
/// from double to float. kProductLowerTolerance: lower limit if the stated number is a rounded
/// product.
inline constexpr double kFloatUpperTolerance = 1.0 + 0x1p-22;
inline constexpr double kProductLowerTolerance = 1.0 - 0x1p-51;
/// Largest factor by which the trainer increases a standard deviation on the host, so that rounding
/// never makes it smaller than the plan's.
inline constexpr double kHostUpperTolerance = 1.0 + 1e-9;

}  // namespace cudp::verify
