#pragma once
// Recognises files that are not text tables, or not written as their schema states, and advises the
// user.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Returns a message that says what kind of file begins with these bytes and what to do about it.
/// Returns "" if it may be a text table.
std::string describe_foreign(std::span<const std::uint8_t> head);

/// Advice to convert a file to UTF-8; the end of encoding_fault's texts.
extern const std::string_view kIconvAdvice;

/// If a text is not UTF-8, returns the end of an error message, which states this and quotes the
/// text; otherwise "".
std::string encoding_fault(std::string_view text);

/// For a line that does not contain `delimiter`: returns a hint which delimiter it seems to use, ";
/// the line has 3 ';'...". Returns "" if it has none of the usual ones.
std::string other_delimiter(std::string_view line, char delimiter);

}  // namespace cudp
