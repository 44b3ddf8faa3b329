#include "runtime/data/csv.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cudp {
namespace {

/// Initial size of the buffer [bytes]. The buffer is doubled if a line does not fit.
constexpr std::size_t kFirstBuffer = std::size_t{256} << 10;
/// Maximum length of a line [bytes].
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

/// Tracks whether the text of a row, read so far, ends inside a quoted cell.
class Quotes {
 public:
  explicit Quotes(char delimiter) : delimiter_(delimiter) {}

  void follow(std::string_view text) {
    for (const char c : text) {
      switch (state_) {
        case State::start:
          if (c == '"')
            state_ = State::quoted;
          else if (c != ' ' && c != delimiter_)
            state_ = State::plain;
          break;
        case State::plain:
          if (c == delimiter_) state_ = State::start;
          break;
        case State::quoted:
          if (c == '"') state_ = State::quote;
          break;
        case State::quote:
          state_ = c == '"' ? State::quoted : c == delimiter_ ? State::start : State::plain;
          break;
      }
    }
  }
  bool open() const { return state_ == State::quoted; }

 private:
  enum class State {
    start,   // start of a cell
    plain,   // inside a cell without quotes, or after a quoted one
    quoted,  // inside a quoted cell
    quote    // after a quote in a quoted cell: its end, or the first of a doubled quote
  };
  char delimiter_;
  State state_ = State::start;
};

/// 64 consecutive bytes of a text, which are compared with a character all at once. Uses SIMD
/// instructions if the compiler supports vectors of 16 bytes.
class Bytes64 {
 public:
  /// Loads 64 bytes from offset `at`; zeros after the end of the text.
  Bytes64(std::string_view text, std::size_t at) {
    if (text.size() - at < sizeof(parts_)) {
      std::memset(parts_, 0, sizeof(parts_));
      std::memcpy(parts_, text.data() + at, text.size() - at);
    } else {
      std::memcpy(parts_, text.data() + at, sizeof(parts_));
    }
  }

  /// Returns a mask whose bit i is set if byte i equals c.
  std::uint64_t equal_to(char c) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) bits |= std::uint64_t{mask_of(parts_[i] == c)} << 16 * i;
    return bits;
  }

 private:
  using Part = signed char __attribute__((vector_size(16)));

  /// Returns a mask of 16 bits, the highest bit of each of the 16 bytes.
  static std::uint16_t mask_of(Part bytes) {
#if defined(__SSE2__)
    return static_cast<std::uint16_t>(::_mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)));
#else
    // Each byte is 0 or 255, the result of a comparison. Byte i of a half (8 bytes) is reduced to
    // its bit i, so that the sum of the half's bytes is the mask of this half.
    const Part places = {1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128};
    std::array<std::uint64_t, 2> halves;
    const Part kept = bytes & places;
    std::memcpy(halves.data(), &kept, sizeof(kept));
    const auto sum = [](std::uint64_t half) {
      return static_cast<std::uint16_t>(half * 0x0101010101010101u >> 56);
    };
    return static_cast<std::uint16_t>(sum(halves[0]) | sum(halves[1]) << 8);
#endif
  }

  Part parts_[4];
};

}  // namespace

bool LineReader::read_more() {
  if (ended_) return false;
  if (last_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + last_, end_ - last_);
    end_ -= last_;
    begin_ -= last_;
    last_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.empty() ? kFirstBuffer : 2 * buffer_.size());
  const std::size_t n = bytes_.read(std::span(buffer_).subspan(end_));
  end_ += n;
  ended_ = end_ < buffer_.size();
  return n > 0;
}

/// Finds the end of a line: sets `line` to the text from last_ to the first line break at or after
/// the offset `from`, and reads more of the file if necessary. Returns false, and does not set
/// `line`, if the file has no text from `from` on. If the line is too long, throws InputError or
/// cuts it, as the reader's LongLines option states. Whether and where a line is cut depends on the
/// bytes of the line only, not on how the file was divided into reads.
bool LineReader::extend(std::size_t from, std::string_view& line) {
  const std::size_t kept = from - last_;  // size of the text that join() extends [bytes]
  std::size_t searched = kept;
  for (;;) {
    const char* const text = reinterpret_cast<const char*>(buffer_.data()) + last_;
    const std::size_t size = end_ - last_;
    const std::size_t limit = std::min(size, kLongestLine + 1);
    const auto* const found =
        limit > searched
            ? static_cast<const char*>(std::memchr(text + searched, '\n', limit - searched))
            : nullptr;
    if (found != nullptr) {
      line = {text, static_cast<std::size_t>(found - text)};
      begin_ = last_ + line.size() + 1;
      break;
    }
    if (size > kLongestLine) {
      if (long_lines_ == LongLines::refuse)
        bad_input(file(), "line " + std::to_string(number_),
                  kept > 0 ? "a closing double quote" : "a line of at most 16 MiB",
                  kept > 0 ? "none in 16 MiB" : "a longer one");
      was_cut_ = true;
      line = {text, kLongestLine + 1};
      begin_ = last_ + line.size();
      return true;
    }
    searched = size;
    if (read_more()) continue;
    if (end_ - last_ == kept) return false;
    line = {reinterpret_cast<const char*>(buffer_.data()) + last_, end_ - last_};
    begin_ = end_;
    break;
  }
  ++lines_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

bool LineReader::discard(std::string_view& part) {
  if (begin_ == end_) {
    last_ = begin_ = end_ = 0;
    if (!read_more()) return false;
  }
  const char* const text = reinterpret_cast<const char*>(buffer_.data()) + begin_;
  const auto* const found = static_cast<const char*>(std::memchr(text, '\n', end_ - begin_));
  part = {text, found != nullptr ? static_cast<std::size_t>(found - text) + 1 : end_ - begin_};
  begin_ += part.size();
  last_ = begin_;
  if (found != nullptr) ++lines_;
  return true;
}

std::span<const std::uint8_t> LineReader::head() {
  if (end_ == 0) read_more();
  return std::span(buffer_).first(std::min(end_, kHead));
}

bool LineReader::next(std::string_view& line) {
  last_ = begin_;
  was_cut_ = false;
  number_ = lines_ + 1;
  if (lines_ == 0 || marks_ == ByteOrderMarks::of_rows) skip_mark();
  return extend(begin_, line);
}

/// Skips a byte-order mark at the offset begin_, i.e. at the start of the next line.
void LineReader::skip_mark() {
  while (end_ - begin_ < kByteOrderMark.size() && read_more()) {
  }
  const std::string_view text(reinterpret_cast<const char*>(buffer_.data()) + begin_,
                              end_ - begin_);
  if (text.starts_with(kByteOrderMark)) last_ = begin_ += kByteOrderMark.size();
}

bool LineReader::join(std::string_view& line) { return extend(begin_, line); }

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool CellSplitter::next_row(LineReader& lines, const std::string& skip_prefix,
                            std::string_view& row) const {
  while (lines.next(row)) {
    const bool skipped = !skip_prefix.empty() && row.starts_with(skip_prefix);
    read_rest(lines, row);
    if (skipped) continue;
    if (lines.was_cut()) row = {};
    if (lines.was_cut() || !trimmed(row).empty()) return true;
  }
  return false;
}

/// Completes a row that has several lines: `row` has the first line, and lines are appended to it
/// until no quoted cell is open. If the row is too long and is cut, its rest is read and discarded.
/// The end of the row is recognised from its quotes, so that no part of it is read as another row.
void CellSplitter::read_rest(LineReader& lines, std::string_view& row) const {
  const bool follows = quotes_ && (lines.was_cut() || row.find('"') != std::string_view::npos);
  Quotes quotes(delimiter_);
  if (follows) quotes.follow(row);
  while (quotes.open() && !lines.was_cut()) {
    const std::size_t followed = row.size();
    if (!lines.join(row)) return;
    quotes.follow(row.substr(followed));
  }
  if (!lines.was_cut()) return;
  std::string_view part;
  while (lines.discard(part)) {
    if (follows) quotes.follow(part);
    if (part.ends_with('\n') && !quotes.open()) return;
  }
}

std::span<const std::string_view> CellSplitter::split(std::string_view row) {
  cells_.clear();
  unquoted_.clear();
  fault_ = {};
  if (delimiter_ != ' ' && split_plain(row)) return cells_;
  cells_.clear();
  std::string_view rest = delimiter_ == ' ' ? trimmed(row) : row;
  for (;;) {
    // Blanks before a cell are not part of it. A tab may be the delimiter, so it is not skipped.
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    if (quotes_ && rest.starts_with('"')) {
      if (unquoted_.capacity() < row.size()) unquoted_.reserve(row.size());
      cells_.push_back(take_quoted(rest));
      if (!fault_.expected.empty()) return cells_;
    } else {
      const std::size_t end = rest.find(delimiter_);
      cells_.push_back(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end, rest.size()));
    }
    if (rest.empty()) return cells_;
    rest.remove_prefix(1);  // the delimiter
  }
}

/// Splits a row without quotes at every delimiter, 64 bytes at a time. Returns false if the row has
/// a quote.
bool CellSplitter::split_plain(std::string_view row) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < row.size(); at += 64) {
    const Bytes64 bytes(row, at);
    if (quotes_ && bytes.equal_to('"') != 0) return false;
    for (std::uint64_t found = bytes.equal_to(delimiter_); found != 0; found &= found - 1) {
      const std::size_t end = at + static_cast<std::size_t>(std::countr_zero(found));
      if (end >= row.size()) break;  // matches in the zeros after the end of the text
      cells_.push_back(trimmed(row.substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  cells_.push_back(trimmed(row.substr(begin)));
  return true;
}

std::string_view CellSplitter::take_quoted(std::string_view& rest) {
  const std::size_t start = unquoted_.size();
  rest.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest.find('"');
    if (quote == std::string_view::npos) {
      fault_ = {"a closing double quote", "the end of the file"};
      return {};
    }
    unquoted_ += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    unquoted_ += '"';
    rest.remove_prefix(1);
  }
  while (!rest.empty() && rest.front() == ' ' && delimiter_ != ' ') rest.remove_prefix(1);
  if (!rest.empty() && rest.front() != delimiter_)
    fault_ = {"a delimiter after a closing double quote", shown(rest)};
  return std::string_view(unquoted_).substr(start);
}

}  // namespace cudp
