#pragma once
// Conversion between numbers and texts, independent of the locale.
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace cudp {

/// Appends a number to `to`, as the shortest decimal text that reads back as the same number.
template <class T>
void append_number(T value, std::string& to) {
  std::array<char, 32> text;
  to.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

template <class T>
std::string number_text(T value) {
  std::string text;
  append_number(value, text);
  return text;
}

/// Parses the whole text as a number of type T. Returns nullopt if it is not a number, or does not
/// fit T.
template <class T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace cudp
