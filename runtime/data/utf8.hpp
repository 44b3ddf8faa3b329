#pragma once
#include <cstddef>
#include <string_view>

namespace cudp {

/// The first Unicode character of a UTF-8 text.
struct Utf8Character {
  std::size_t bytes = 0;  ///< 0: the text is empty, or does not begin with valid UTF-8
  char32_t code = 0;
};

/// Decodes the first character of a text. Overlong encodings and surrogates are invalid.
Utf8Character first_character(std::string_view text);

bool is_utf8(std::string_view text);

/// Returns whether the character with this code point is safe to print on a terminal: not a control
/// character, without effect on the writing direction, and of non-zero width.
bool is_printable(char32_t code);

}  // namespace cudp
