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

/// Lines of a text file, split at '\n' alone; a '\r' before it and a byte-order mark at the start
/// of the file are dropped. Throws InputError on a line of more than 16 MiB.
class LineReader {
 public:
  explicit LineReader(ByteReader& bytes) : bytes_(bytes) {}

  /// False at the end. `line` is valid until the next call.
  bool next(std::string_view& line);
  /// Number of the line last given, counted from 1.
  std::uint64_t number() const { return number_; }
  const std::string& file() const { return bytes_.name(); }

 private:
  bool read_more();

  ByteReader& bytes_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;  // of what has not been given yet
  std::size_t end_ = 0;
  bool ended_ = false;
  std::uint64_t number_ = 0;
};

/// Blanks and tabs off both ends.
std::string_view trimmed(std::string_view text);

/// Splits lines into cells. A delimiter ' ' stands for any run of blanks. A cell may stand in
/// double quotes, doubled inside, but may not reach over a line's end; unless quotes are characters
/// like all others.
class CellSplitter {
 public:
  explicit CellSplitter(char delimiter, bool quotes = true)
      : delimiter_(delimiter), quotes_(quotes) {}

  /// The cells, trimmed; valid until the next call and as long as the line. Throws InputError on a
  /// quote that does not end or is followed by text.
  std::span<const std::string_view> split(const LineReader& at, std::string_view line);

 private:
  std::string_view take_quoted(const LineReader& at, std::string_view& rest);

  char delimiter_;
  bool quotes_;
  std::vector<std::string_view> cells_;
  std::string unquoted_;  // reserved to the line's length, so that views into it stay valid
};

}  // namespace cudp
