#include "privacy/text/words.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>

namespace cudp::privacy {

std::string hex(double value) {
  std::array<char, 40> text{};
  const std::to_chars_result end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  return {text.data(), end.ptr};
}

void expected(const std::string& what, std::string_view found) {
  constexpr std::size_t max_length = 60;
  std::string shown(found.substr(0, max_length));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  throw std::invalid_argument("expected " + what + ", found '" + shown +
                              (found.size() > max_length ? "...'" : "'"));
}

std::string_view take_word(std::string_view& line) {
  const std::size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  return word;
}

std::uint64_t take_count(std::string_view& line) {
  const std::string_view word = take_word(line);
  std::uint64_t value = 0;
  const std::from_chars_result end = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end.ec != std::errc() || end.ptr != word.data() + word.size()) expected("a count", word);
  return value;
}

double take_number(std::string_view& line) {
  const std::string_view word = take_word(line);
  double value = 0.0;
  const std::from_chars_result end =
      std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::hex);
  if (end.ec != std::errc() || end.ptr != word.data() + word.size())
    expected("a hexadecimal number", word);
  return value;
}

}  // namespace cudp::privacy
