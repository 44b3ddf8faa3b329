#pragma once
#include <limits>

namespace cudp::privacy {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Relative distance from 1 to the next larger double, 2^-52: twice the largest relative rounding
/// error of one operation in double.
inline constexpr double rounding = std::numeric_limits<double>::epsilon();

/// Multiplying the result of up to eight rounded operations on positive numbers by this factor
/// gives an upper bound on the exact result.
inline constexpr double outward = 1.0 + 8.0 * rounding;

}  // namespace cudp::privacy
