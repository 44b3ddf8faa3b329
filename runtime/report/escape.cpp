#include "runtime/report/escape.hpp"

#include <cstddef>
#include <cstdint>

#include <spdlog/fmt/fmt.h>

namespace cudp::page {
namespace {

/// A Unicode character that was decoded from UTF-8, and the number of bytes that it takes.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// Returns the character at the start of the text and its length in bytes; length 0 if the bytes
/// are not UTF-8. Overlong forms and surrogates count as not UTF-8.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {};
  std::uint32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[size] || code > 0x10ffff || surrogate) return {};
  return {code, size};
}

/// Returns whether a character can mislead a reader: it is invisible, or changes how others are
/// shown.
bool deceives(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x115f ||
         c == 0x1160 || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0x3164 ||
         c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe ||
         (c >= 0xfdd0 && c <= 0xfdef) || (c >= 0xe0000 && c <= 0xe0fff);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const Character c = first_of(text);
    if (c.bytes == 0)
      line += fmt::format("\\x{{{:02x}}}", static_cast<unsigned char>(text.front()));
    else if (deceives(c.code))
      line += fmt::format("\\u{{{:x}}}", c.code);
    else
      line += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return line;
}

std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string markdown(std::string_view text) {
  // Characters of kAtTheStart are escaped only at the start of the line. Markdown turns bare
  // addresses into links; to prevent this, one character of "://", "www." or "@" is written as an
  // HTML character reference.
  constexpr std::string_view kMeanSomething = "\\`*_{}[]|~$";
  constexpr std::string_view kAtTheStart = "#+-=";
  const std::string line = one_line(text);
  std::string escaped;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else if (c == '.' && i >= 3 && (line.compare(i - 3, 3, "www") == 0))
      escaped += "&#46;";
    else if (c == ':' && line.compare(i, 3, "://") == 0)
      escaped += "&#58;";
    else if (c == '@')
      escaped += "&#64;";
    else if (kMeanSomething.find(c) != std::string_view::npos ||
             (i == 0 && kAtTheStart.find(c) != std::string_view::npos))
      escaped += std::string("\\") + c;
    else
      escaped += c;
  }
  // "1." or "1)" at the start of a line would begin a list, so the "." or ")" is escaped.
  const std::size_t digits = line.find_first_not_of("0123456789");
  const bool ends = digits + 1 == line.size() || line.compare(digits + 1, 1, " ") == 0;
  if (digits != 0 && digits != std::string::npos && (line[digits] == '.' || line[digits] == ')') &&
      ends)
    escaped.insert(digits, "\\");
  return escaped;
}

std::string yaml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : one_line(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace cudp::page
