#pragma once
#include <string>

namespace cudp {

/// Returns a number as text with six digits, rounded up, so that an upper bound that is copied from
/// a table stays one. Requires value finite and >= 0.
std::string rounded_up(double value);
/// Returns a number as text with six digits, rounded down, e.g. a lower bound. Requires value
/// finite and >= 0.
std::string rounded_down(double value);
/// Returns a number as text with three digits, rounded up, for sentences: 1.99999 is "2".
std::string short_rounded_up(double value);

}  // namespace cudp
