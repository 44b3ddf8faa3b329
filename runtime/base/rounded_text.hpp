#pragma once
#include <string>

namespace cudp {

/// Returns a number as text with this many significant digits, rounded up, so that the text of an
/// upper bound is still an upper bound. Requires value finite and >= 0.
std::string rounded_up(double value, int digits = 6);
/// Returns a number as text with six significant digits, rounded down, so that the text of a lower
/// bound is still a lower bound. Requires value finite and >= 0.
std::string rounded_down(double value);
/// Returns a number as text with three significant digits, rounded up, for use in sentences:
/// 1.99999 is "2".
std::string short_rounded_up(double value);

}  // namespace cudp
