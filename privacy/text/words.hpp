#pragma once
#include <cstdint>
#include <string>
#include <string_view>

// Text that can be read back exactly: words separated by single spaces.

namespace cudp::privacy {

/// Returns a number as hexadecimal floating-point text, which reads back as exactly this number.
std::string hex(double value);

/// Throws std::invalid_argument with the text "expected WHAT, found 'FOUND'", from what and found,
/// as one line of printable characters.
[[noreturn]] void expected(const std::string& what, std::string_view found);

/// Removes the next word from `line` and returns it; "" if there is none.
std::string_view take_word(std::string_view& line);
/// Removes the next word from `line` and returns it as a whole number. Throws
/// std::invalid_argument, "expected ..., found ...", if it is not one.
std::uint64_t take_count(std::string_view& line);
/// Removes the next word from `line` and returns it as a number. Throws std::invalid_argument,
/// "expected ..., found ...", if it is not one.
double take_number(std::string_view& line);

}  // namespace cudp::privacy
