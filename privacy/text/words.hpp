#pragma once
#include <cstdint>
#include <string>
#include <string_view>

// Text that is read back exactly: words with one space between them.

namespace cudp::privacy {

/// `value` in hexadecimal, every bit of it.
std::string hex(double value);

/// Throws std::invalid_argument: "expected WHAT, found 'FOUND'", in one printable line.
[[noreturn]] void expected(const std::string& what, std::string_view found);

/// The next word of `line`, taken from it; the empty word at its end.
std::string_view take_word(std::string_view& line);
/// The word as a number. They throw what `expected` throws.
std::uint64_t take_count(std::string_view& line);
double take_number(std::string_view& line);

}  // namespace cudp::privacy
