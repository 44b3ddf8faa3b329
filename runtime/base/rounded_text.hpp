#pragma once
#include <string>

namespace cudp {

/// Returns a number with six digits, rounded up or down, so that a number copied from a table is on
/// the safe side. Requires value finite and >= 0.
std::string rounded_up(double value);
std::string rounded_down(double value);
/// Returns a number with three digits, rounded up, for sentences: 1.99999 is "2".
std::string short_rounded_up(double value);

}  // namespace cudp
