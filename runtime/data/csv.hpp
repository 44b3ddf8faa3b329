#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

enum class LongLines {
  refuse,  ///< throw InputError
  cut      ///< give an empty line in its place, and say so by was_cut()
};

/// Lines of a text file, split at '\n' alone; a '\r' before it and a byte-order mark at the start
/// of the file are dropped. A line, or what is joined, has at most 16 MiB.
class LineReader {
 public:
  static constexpr std::size_t kHead = 64;

  explicit LineReader(ByteReader& bytes, LongLines long_lines = LongLines::refuse)
      : bytes_(bytes), long_lines_(long_lines) {}

  /// False at the end. `line` is valid until the next call.
  bool next(std::string_view& line);
  /// Makes `line`, the one last given, reach over the next one too, with the line break between
  /// them. False at the end of the file.
  bool join(std::string_view& line);
  /// The first bytes of the file, up to kHead. To be asked for before any line is.
  std::span<const std::uint8_t> head();
  /// Number of the line last given, or of the first that was joined, counted from 1.
  std::uint64_t number() const { return number_; }
  bool was_cut() const { return was_cut_; }
  const std::string& file() const { return bytes_.name(); }

 private:
  bool read_more();
  bool extend(std::size_t from, std::string_view& line);
  void skip_line();

  ByteReader& bytes_;
  LongLines long_lines_;
  std::vector<std::uint8_t> buffer_;
  std::size_t last_ = 0;   // of the line last given
  std::size_t begin_ = 0;  // of what has not been given yet
  std::size_t end_ = 0;
  bool ended_ = false;
  bool was_cut_ = false;
  std::uint64_t number_ = 0;
  std::uint64_t lines_ = 0;  // given so far, those joined too
};

/// Blanks and tabs off both ends.
std::string_view trimmed(std::string_view text);

/// A fault of a row's text; empty texts: there is none.
struct SplitFault {
  std::string_view expected;
  std::string found;
};

/// Splits rows into cells. A delimiter ' ' stands for any run of blanks. A cell may stand in double
/// quotes, doubled inside; unless quotes are characters like all others.
class CellSplitter {
 public:
  explicit CellSplitter(char delimiter, bool quotes = true)
      : delimiter_(delimiter), quotes_(quotes) {}

  /// The next row that is neither blank nor starts with `skip_prefix` (empty: none does): a line,
  /// and those after it while a quoted cell has not ended. False at the end of the file.
  bool next_row(LineReader& lines, const std::string& skip_prefix, std::string_view& row) const;

  /// The cells, trimmed; valid until the next call and as long as the row. What is wrong with it is
  /// fault() then, and the cells mean nothing.
  std::span<const std::string_view> split(std::string_view row);
  /// The fault of the row last split: a quote that does not end, or is followed by text.
  const SplitFault& fault() const { return fault_; }

 private:
  bool split_plain(std::string_view row);
  std::string_view take_quoted(std::string_view& rest);

  char delimiter_;
  bool quotes_;
  std::vector<std::string_view> cells_;
  std::string unquoted_;  // reserved to the row's length, so that views into it stay valid
  SplitFault fault_;
};

}  // namespace cudp
