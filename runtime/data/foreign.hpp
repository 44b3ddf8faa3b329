#pragma once
// Recognition of files that are not tables, or not as their schema states, and advice for the user.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Returns what a file is, and what to do about it, if its first bytes show that it is not a table
/// of text; "" if it may be a table.
std::string describe_foreign(std::span<const std::uint8_t> head);

/// Advice for a file that is not UTF-8; the end of a message of encoding_fault.
extern const std::string_view kIconvAdvice;

/// Returns why a text is not UTF-8; "" if it is.
std::string encoding_fault(std::string_view text);

/// Returns the delimiter that a line without `delimiter` seems to use, "; the line has 3
/// ';'..."; "" if it has none of the usual ones.
std::string other_delimiter(std::string_view line, char delimiter);

}  // namespace cudp
