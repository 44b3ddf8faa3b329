#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// The byte-order mark of UTF-8, three bytes with which some programs begin a text file.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

enum class LongLines {
  refuse,  ///< throw InputError
  cut      ///< return its beginning; was_cut() is then true
};

/// Places at which a LineReader removes a byte-order mark, the bytes EF BB BF that some programs
/// write at the start of UTF-8 text.
enum class ByteOrderMarks {
  of_file,  ///< at the start of the file
  /// At the start of every line that next() returns, not only of the first one. A line then has the
  /// same meaning wherever it is in the file.
  of_rows
};

/// Reads the lines of a text file, split at '\n'. A '\r' before the '\n', and byte-order marks, are
/// removed. A line is at most 16 MiB long, the '\r' included; the same limit holds for several
/// lines that join() has combined.
class LineReader {
 public:
  static constexpr std::size_t kHead = 64;

  explicit LineReader(ByteReader& bytes, LongLines long_lines = LongLines::refuse,
                      ByteOrderMarks marks = ByteOrderMarks::of_file)
      : bytes_(bytes), long_lines_(long_lines), marks_(marks) {}

  /// Sets `line` to the next line, which is valid until the next call; returns false at the end of
  /// the file. If the previous line was too long and was cut, the caller must first remove its rest
  /// with discard().
  bool next(std::string_view& line);
  /// Extends `line`, which must be the line returned last, to include the next line of the file and
  /// the line break between the two. Returns false at the end of the file.
  bool join(std::string_view& line);
  /// Reads the next part of the text after a line that was cut (was_cut()): the rest of that line,
  /// and then the lines after it. A part ends after a line break, or earlier if the reader's buffer
  /// ends. Returns false at the end of the file. `part` is valid until the next call. The text that
  /// next() returned becomes invalid.
  bool discard(std::string_view& part);
  /// Returns the first bytes of the file: kHead (64) of them, or all if the file is shorter.
  /// Requires that no line has been read.
  std::span<const std::uint8_t> head();
  /// Returns the number, counted from 1, of the line returned last; if lines were joined, of the
  /// first of them.
  std::uint64_t number() const { return number_; }
  bool was_cut() const { return was_cut_; }
  const std::string& file() const { return bytes_.name(); }

 private:
  bool read_more();
  bool extend(std::size_t from, std::string_view& line);
  void skip_mark();

  ByteReader& bytes_;
  LongLines long_lines_;
  ByteOrderMarks marks_;
  std::vector<std::uint8_t> buffer_;
  std::size_t last_ = 0;   // start of the line returned last
  std::size_t begin_ = 0;  // start of the text that is not returned yet
  std::size_t end_ = 0;
  bool ended_ = false;
  bool was_cut_ = false;
  std::uint64_t number_ = 0;
  std::uint64_t lines_ = 0;  // number of lines read, including joined and discarded ones
};

/// Returns the text without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);

/// An error in how a CSV row uses quotation marks, as the two parts of the message "expected ...,
/// found ...". Both parts are empty if there is no error.
struct SplitFault {
  std::string_view expected;
  std::string found;
};

/// Splits rows of a CSV file into cells. A delimiter ' ' stands for any run of blanks. Unless
/// `quotes` is false, a cell may be in double quotes, and a quote inside them is written twice.
class CellSplitter {
 public:
  explicit CellSplitter(char delimiter, bool quotes = true)
      : delimiter_(delimiter), quotes_(quotes) {}

  /// Reads the next row that is neither blank nor begins with `skip_prefix` (empty: no row is
  /// skipped). A row is one line of the file, or several if a quoted cell has line breaks; this
  /// holds for skipped rows, too. If a row is longer than the reader allows, `row` is empty.
  /// Returns false at the end of the file. lines: the file, from its next line on.
  bool next_row(LineReader& lines, const std::string& skip_prefix, std::string_view& row) const;

  /// Returns the cells of a row, without blanks at their ends. The returned views are valid until
  /// the next call of split(), and only as long as `row` is valid. If the row's quotes are wrong,
  /// so that fault() returns an error, the cells are meaningless.
  std::span<const std::string_view> split(std::string_view row);
  /// Returns the error of the last row passed to split(): a quote that is not closed, or is
  /// followed by text.
  const SplitFault& fault() const { return fault_; }

 private:
  void read_rest(LineReader& lines, std::string_view& row) const;
  bool split_plain(std::string_view row);
  std::string_view take_quoted(std::string_view& rest);

  char delimiter_;
  bool quotes_;
  std::vector<std::string_view> cells_;
  // Content of the quoted cells, with doubled quotes replaced by single ones. Its capacity is at
  // least the row's length, so that it is not reallocated and views of it stay valid.
  std::string unquoted_;
  SplitFault fault_;
};

}  // namespace cudp
