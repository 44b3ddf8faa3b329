#include "runtime/data/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <utf8proc.h>

#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

/// The line break of HTML, which the tokenizer does not treat as a word.
constexpr std::string_view kLineBreak = "<br />";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\''; }

/// Returns whether the text begins with an HTML line break, in upper or lower case.
bool is_line_break(std::string_view text) {
  return text.size() >= kLineBreak.size() &&
         std::equal(kLineBreak.begin(), kLineBreak.end(), text.begin(),
                    [](char a, char b) { return a == lower(b); });
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_blank(char32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || category(c) == UTF8PROC_CATEGORY_ZS;
}

/// Returns whether BERT's tokenizer drops the character c: it is in the Unicode category Cc, Cf,
/// Cn, Co or Cs, or it is U+FFFD, which stands for bytes that are not UTF-8.
bool is_dropped(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return true;
    default:
      return c == 0xfffd;
  }
}

/// Returns whether the character c is punctuation: a character of the Unicode categories P*, or any
/// printable ASCII character except letters, digits and the blank.
bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  switch (category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

/// Returns whether the character c is in one of the blocks of Chinese characters that BERT lists.
bool is_chinese(char32_t c) {
  constexpr std::array<std::array<char32_t, 2>, 8> kBlocks = {{{0x4e00, 0x9fff},
                                                               {0x3400, 0x4dbf},
                                                               {0x20000, 0x2a6df},
                                                               {0x2a700, 0x2b73f},
                                                               {0x2b740, 0x2b81f},
                                                               {0x2b820, 0x2ceaf},
                                                               {0xf900, 0xfaff},
                                                               {0x2f800, 0x2fa1f}}};
  return std::any_of(kBlocks.begin(), kBlocks.end(),
                     [c](const auto& b) { return c >= b[0] && c <= b[1]; });
}

void append_utf8(std::string& to, utf8proc_int32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t length = utf8proc_encode_char(c, bytes.data());
  to.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

/// Splits a text into words as split_basic() does. add() receives the text's characters one by one.
class BasicSplitter {
 public:
  explicit BasicSplitter(const UseToken& use) : use_(use) {}

  void add(char32_t c) {
    if (is_blank(c)) return flush();
    if (is_dropped(c)) return;
    if (is_chinese(c)) {
      flush();
      append_plain(c);
      return flush();
    }
    append_plain(c);
  }

  void flush() {
    if (!word_.empty()) use_(word_);
    word_.clear();
  }

 private:
  /// Appends the character c to the current word, in lower case and without accents.
  void append_plain(char32_t c) {
    if (c < 0x80) return append_part(static_cast<utf8proc_int32_t>(c));
    std::array<utf8proc_int32_t, 32> parts{};
    int last_boundary = 0;
    const utf8proc_ssize_t length =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                UTF8PROC_DECOMPOSE, &last_boundary);
    for (utf8proc_ssize_t i = 0; i < length; ++i) append_part(parts[static_cast<std::size_t>(i)]);
  }

  void append_part(utf8proc_int32_t c) {
    if (utf8proc_category(c) == UTF8PROC_CATEGORY_MN) return;
    c = utf8proc_tolower(c);
    const bool alone = is_punctuation(static_cast<char32_t>(c));
    if (alone) flush();
    append_utf8(word_, c);
    if (alone) flush();
  }

  const UseToken& use_;
  std::string word_;
};

}  // namespace

void split_words(std::string_view text, const UseToken& use) {
  std::string word;
  const auto flush = [&] {
    std::string_view w = word;
    while (w.starts_with('\'')) w.remove_prefix(1);
    while (w.ends_with('\'')) w.remove_suffix(1);
    if (!w.empty()) use(w);
    word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = lower(text[i]);
    if (in_word(c)) {
      word += c;
      continue;
    }
    flush();
    if (is_line_break(text.substr(i))) i += kLineBreak.size() - 1;
  }
  flush();
}

bool is_word(std::string_view word) {
  int tokens = 0;
  bool same = false;
  split_words(word, [&](std::string_view token) {
    ++tokens;
    same = token == word;
  });
  return tokens == 1 && same;
}

void split_basic(std::string_view text, const UseToken& use) {
  BasicSplitter splitter(use);
  while (!text.empty()) {
    if (is_line_break(text)) {
      splitter.flush();
      text.remove_prefix(kLineBreak.size());
      continue;
    }
    const Utf8Character next = first_character(text);
    if (next.bytes > 0) splitter.add(next.code);
    text.remove_prefix(std::max(next.bytes, std::size_t{1}));
  }
  splitter.flush();
}

bool split_pieces(std::string_view word, std::size_t longest,
                  const std::function<bool(std::string_view)>& is_piece, const UseToken& use) {
  constexpr std::ptrdiff_t kMaxCharacters = 100;
  if (std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xc0) != 0x80; }) >
      kMaxCharacters)
    return false;
  std::vector<std::string> pieces;
  std::string piece;
  for (std::size_t begin = 0; begin < word.size();) {
    piece.assign(begin == 0 ? "" : "##").append(word.substr(begin));
    const std::size_t prefix = begin == 0 ? 0 : 2;
    piece.resize(std::min(piece.size(), longest));
    while (piece.size() > prefix && !is_piece(piece)) piece.pop_back();
    if (piece.size() <= prefix) return false;
    begin += piece.size() - prefix;
    pieces.push_back(piece);
  }
  for (const std::string& p : pieces) use(p);
  return true;
}

}  // namespace cudp
