#pragma once
#include <cstddef>
#include <string_view>

namespace cudp {

/// The character at the start of a text.
struct Utf8Character {
  std::size_t bytes = 0;  ///< 0: the text is empty, or does not begin with valid UTF-8
  char32_t code = 0;
};

/// Decodes the first character. Overlong forms and surrogates are invalid.
Utf8Character first_character(std::string_view text);

bool is_utf8(std::string_view text);

/// Returns whether a terminal shows the character and does nothing else: it is not a control
/// character, does not change the direction of writing, and has a width.
bool is_printable(char32_t code);

}  // namespace cudp
