#pragma once
#include <limits>

namespace cudp::privacy {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Relative distance from 1 to the next larger double, 2^-52: twice the largest relative rounding
/// error of one operation.
inline constexpr double rounding = std::numeric_limits<double>::epsilon();

/// Factor that makes the result of up to eight rounded operations an upper bound.
inline constexpr double outward = 1.0 + 8.0 * rounding;

}  // namespace cudp::privacy
