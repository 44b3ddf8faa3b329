#pragma once
#include <cstddef>
#include <string_view>

namespace cudp {

/// One character at the start of a text.
struct Utf8Character {
  std::size_t bytes = 0;  ///< 0: the text is empty, or does not start with UTF-8
  char32_t code = 0;
};

/// The first character, in its shortest form and no surrogate.
Utf8Character first_character(std::string_view text);

bool is_utf8(std::string_view text);

/// Whether a terminal can show the character and nothing else happens: no control character, and
/// none that turns the direction of writing or has no width.
bool is_printable(char32_t code);

}  // namespace cudp
