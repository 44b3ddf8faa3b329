#include "runtime/data/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utf8.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

constexpr std::string_view kLineBreak = "<br />";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\''; }

/// Returns whether the text begins with an HTML line break, in upper or lower case.
bool is_line_break(std::string_view text) {
  return text.size() >= kLineBreak.size() &&
         std::equal(kLineBreak.begin(), kLineBreak.end(), text.begin(),
                    [](char a, char b) { return a == lower(b); });
}

bool is_blank(UChar32 c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || u_charType(c) == U_SPACE_SEPARATOR;
}

/// Returns whether BERT drops the character: categories Cc, Cf, Cn, Co, Cs, and the replacement for
/// bytes that are not UTF-8.
bool is_dropped(UChar32 c) {
  constexpr std::uint32_t kOther =
      U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CN_MASK | U_GC_CO_MASK | U_GC_CS_MASK;
  return c < 0 || c == 0xfffd || (U_GET_GC_MASK(c) & kOther) != 0;
}

/// Returns whether the character is punctuation. Unlike in Unicode, every ASCII character that is
/// neither letter nor digit counts.
bool is_punctuation(UChar32 c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126) || (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}

/// Returns whether the character is in one of the blocks of Chinese characters that BERT lists.
bool is_chinese(UChar32 c) {
  constexpr std::array<std::array<UChar32, 2>, 8> kBlocks = {{{0x4e00, 0x9fff},
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

void append_utf8(std::string& to, UChar32 c) {
  std::array<char, U8_MAX_LENGTH> bytes{};
  int length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, c);
  to.append(bytes.data(), static_cast<std::size_t>(length));
}

/// Splits text, one character at a time.
class BasicSplitter {
 public:
  explicit BasicSplitter(const UseToken& use) : use_(use), decompositions_(nfd()) {}

  void add(UChar32 c) {
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
  static const UNormalizer2* nfd() {
    UErrorCode failed = U_ZERO_ERROR;
    const UNormalizer2* n = unorm2_getNFDInstance(&failed);
    ensure(U_SUCCESS(failed), "ICU has no normalisation data");
    return n;
  }

  /// Appends the character without accents, in lower case.
  void append_plain(UChar32 c) {
    if (c < 0x80) return append_part(c);
    std::array<UChar, 32> parts{};
    UErrorCode failed = U_ZERO_ERROR;
    const std::int32_t length =
        unorm2_getDecomposition(decompositions_, c, parts.data(), parts.size(), &failed);
    if (length < 0 || U_FAILURE(failed)) return append_part(c);
    for (std::int32_t i = 0; i < length;) {
      UChar32 part = 0;
      U16_NEXT(parts.data(), i, length, part);
      append_part(part);
    }
  }

  void append_part(UChar32 c) {
    if (u_charType(c) == U_NON_SPACING_MARK) return;
    c = u_tolower(c);
    const bool alone = is_punctuation(c);
    if (alone) flush();
    append_utf8(word_, c);
    if (alone) flush();
  }

  const UseToken& use_;
  const UNormalizer2* decompositions_;
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
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    if (is_line_break(text.substr(static_cast<std::size_t>(i)))) {
      splitter.flush();
      i += static_cast<std::int64_t>(kLineBreak.size());
      continue;
    }
    UChar32 c = 0;
    U8_NEXT(bytes, i, size, c);
    splitter.add(c);
  }
  splitter.flush();
}

bool split_pieces(std::string_view word, std::size_t longest,
                  const std::function<bool(std::string_view)>& is_piece, const UseToken& use) {
  constexpr std::ptrdiff_t kMaxCharacters = 100;
  if (std::count_if(word.begin(), word.end(), [](char c) { return !U8_IS_TRAIL(c); }) >
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
