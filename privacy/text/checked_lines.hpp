#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// Text in which damage is detected: each line ends with a checksum of everything up to it, and the
// last line is "end".

namespace cudp::privacy {

/// Computes a checksum (FNV-1a) of all lines of a text so far, to detect damage; it does not detect
/// forgery. A change of one byte changes every checksum from there on, because every step is a
/// bijection of the checksum's state.
class Checksum {
 public:
  void add_line(std::string_view line);
  std::string text() const;

 private:
  void add(std::string_view text);
  std::uint64_t state_ = 14695981039346656037u;
};

/// Writes text in which each line ends with a checksum.
class CheckedLines {
 public:
  void add(std::string_view line);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  Checksum checksum_;
};

/// Reads text that CheckedLines has written, whose lines end with checksums. name: name of the text
/// in messages. `text` must outlive the reader.
class LineReader {
 public:
  LineReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  /// Returns the next line without its checksum. Verifies the checksum first, so that a damaged
  /// line is never parsed: throws std::invalid_argument if it does not match.
  std::string_view take();
  /// Returns the number of the line that take() returned last, from 1.
  std::size_t number() const { return number_; }

  /// Calls body(), which must call take() for all lines before the last one, "end". Throws
  /// std::invalid_argument, "NAME, line L: expected ..., found ...", if body() throws it, or if
  /// there is text after "end".
  template <class Body>
  void read(const Body& body) {
    try {
      body();
      expect_end();
    } catch (const std::invalid_argument& damage) {
      throw std::invalid_argument(name_ + ", line " + std::to_string(number_) + ": " +
                                  damage.what());
    }
  }

 private:
  void expect_end();

  std::string_view text_;
  std::string name_;
  std::size_t number_ = 0;
  Checksum checksum_;
};

}  // namespace cudp::privacy
