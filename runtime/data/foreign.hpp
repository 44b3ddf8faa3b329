#pragma once
// Recognises files that are not text tables, or not written as their schema states, and advises the
// user.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Returns a message about a file that is not a text table (such as an Excel workbook): its kind,
/// and how to convert it. head: the first bytes of the file. Returns "" if the file may be a text
/// table.
std::string describe_foreign(std::span<const std::uint8_t> head);

/// Advice to the user to convert a file to UTF-8 with the program iconv, as the end of an error
/// message.
extern const std::string_view kIconvAdvice;

/// Returns the second half of an error message about a text that is not UTF-8, which quotes the
/// text; "" if it is UTF-8.
std::string encoding_fault(std::string_view text);

/// Returns a hint for an error message about a line without the delimiter of its table: which
/// delimiter the line seems to use, and how often it occurs, "; the line has 3 ';'...". Returns ""
/// if the line has none of the usual delimiters. delimiter: the table's delimiter.
std::string other_delimiter(std::string_view line, char delimiter);

}  // namespace cudp
