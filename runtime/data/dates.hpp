#pragma once
// Dates in cells. A format is a text with %Y (four digits), %m, %d, %H, %M and %S (one or two
// digits), each at most once, %% for a percent sign, and other characters, which stand for
// themselves. A missing month or day is the first; a missing time is midnight.
#include <optional>
#include <string>
#include <string_view>

namespace cudp {

/// Checks a date format, such as "%d.%m.%Y". Returns "" if it is valid, otherwise a description of
/// the error.
std::string date_format_fault(std::string_view format);

/// Returns days since 1970-01-01 in the Gregorian calendar, with the time as a fraction of a day;
/// nullopt if `text` is not a date in this format from year 1 on.
std::optional<double> parse_date(std::string_view text, std::string_view format);

/// Returns a date, rounded to the second, as text in this format; the inverse of parse_date().
/// days: days since 1970-01-01, a result of parse_date().
std::string format_date(double days, std::string_view format);

}  // namespace cudp
