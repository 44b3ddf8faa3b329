#pragma once
// Dates in cells: their form is a text with %Y (four digits), %m, %d, %H, %M and %S (one or two),
// each once at most, %% and any other characters, which stand for themselves. Without a month or a
// day it is the first, without a time midnight.
#include <optional>
#include <string>
#include <string_view>

namespace cudp {

/// Says what is wrong with a form of dates; empty: nothing.
std::string date_format_fault(std::string_view format);

/// Days since 1970-01-01 in the Gregorian calendar, with the time as a part of a day; nothing where
/// `text` is not a date of this form from year 1 on.
std::optional<double> parse_date(std::string_view text, std::string_view format);

/// The date in this form, to the second: parse_date's inverse. days: what parse_date gave.
std::string format_date(double days, std::string_view format);

}  // namespace cudp
