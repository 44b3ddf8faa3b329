#pragma once
#include <charconv>
#include <string>

namespace cudp::privacy {

/// Returns the shortest decimal text that reads back as the same double, in every locale.
inline std::string number(double value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

}  // namespace cudp::privacy
