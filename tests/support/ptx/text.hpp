#pragma once
// Reading PTX: words, and what stands between them.
#include <charconv>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Returns whether c can be part of a word: a name, a directive, an opcode with its types, or a
/// number.
inline bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

inline std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

/// Splits s at the commas outside of brackets. An empty s has no parts.
inline std::vector<std::string_view> split_at_commas(std::string_view s) {
  std::vector<std::string_view> parts;
  if (trim(s).empty()) return parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t at = 0; at < s.size(); ++at) {
    if (s[at] == '{' || s[at] == '[') ++depth;
    if (s[at] == '}' || s[at] == ']') --depth;
    if (s[at] != ',' || depth != 0) continue;
    parts.push_back(trim(s.substr(from, at - from)));
    from = at + 1;
  }
  parts.push_back(trim(s.substr(from)));
  return parts;
}

inline std::vector<std::string_view> split_at_spaces(std::string_view s) {
  std::vector<std::string_view> words;
  for (s = trim(s); !s.empty(); s = trim(s)) {
    std::size_t n = 0;
    while (n < s.size() && !is_space(s[n])) ++n;
    words.push_back(s.substr(0, n));
    s.remove_prefix(n);
  }
  return words;
}

/// Returns s as a number. Throws Fault if it is not a decimal number, or a hexadecimal one after
/// 0x, in T's range.
template <class T>
T parse_number(std::string_view s) {
  const bool negative = s.starts_with('-');
  std::string_view digits = s.substr(negative ? 1 : 0);
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  u64 magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude,
                                            hexadecimal ? 16 : 10);
  // 01 and 1U would be other kinds of numbers.
  const bool octal = !hexadecimal && digits.size() > 1 && digits[0] == '0';
  const T value = static_cast<T>(negative ? u64{0} - magnitude : magnitude);
  const bool fits = negative ? value < 0 || magnitude == 0 : value >= 0;
  if (error != std::errc() || end != digits.data() + digits.size() || octal || !fits ||
      static_cast<u64>(value) != (negative ? u64{0} - magnitude : magnitude))
    throw Fault("ptx: unknown number, or one out of range: " + std::string(s));
  return value;
}

/// A declared variable, such as .align 8 .b8 name[64].
struct Declaration {
  std::string name;
  u32 align = 1;
  u32 bytes = 0;
  bool sized = true;  ///< not name[]
};
/// Parses a declaration. words: its words, without the state space. Throws Fault.
Declaration parse_declaration(const std::vector<std::string_view>& words);

/// Parses a kernel of a module. begin: offset of its parameters in the text.
std::unique_ptr<Kernel> parse_kernel(const Module& module, const std::string& name);
/// Assigns registers to rows of memory: registers that are not needed at the same time share a row.
void assign_rows(Kernel& kernel);

}  // namespace cudp::ptx
