#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Index of words by their text.
class WordIndex {
 public:
  void add(std::string_view word) { numbers_.emplace(word, static_cast<int>(numbers_.size())); }
  bool contains(std::string_view word) const { return numbers_.contains(word); }
  /// Returns the word's index; -1 if it is not there.
  int find(std::string_view word) const {
    const auto at = numbers_.find(word);
    return at == numbers_.end() ? -1 : at->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, int, Hash, std::equal_to<>> numbers_;
};

/// Rows of the embedding before those of words. Number 0 also fills the array after the end of a
/// text.
enum class Marks {
  none_but_zero,  ///< 0: unknown words. For tables of vectors, whose row 0 is zero.
  four            ///< 0: padding, 1: unknown words, 2: begin, 3: end of a text
};
constexpr int count_of(Marks marks) { return marks == Marks::four ? 4 : 1; }

/// Maximum number of rows, because numbers of words have 16 bits.
inline constexpr int kMaxWords = 65'536;

/// Words and their numbers, from 0: first the marks, then the words in the order of the list.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Requires that the words differ, and are at most kMaxWords together with the marks. Throws
  /// Error otherwise.
  Vocabulary(std::vector<std::string> words, Marks marks);

  const std::vector<std::string>& words() const { return words_; }
  Marks marks() const { return marks_; }
  /// Returns the number of marks and words.
  int rows() const { return count_of(marks_) + static_cast<int>(words_.size()); }
  bool contains(std::string_view word) const { return index_.contains(word); }
  /// Returns the number of the word, or unknown() if it is not in the list.
  std::uint16_t number(std::string_view word) const;
  /// Returns the number for unknown words: that of the list's own "[UNK]" if it has it, else of the
  /// mark.
  std::uint16_t unknown() const { return unknown_; }
  /// Numbers of the begin and end markers; valid only with Marks::four.
  std::uint16_t begin() const { return 2; }
  std::uint16_t end() const { return 3; }
  std::size_t longest() const { return longest_; }  ///< size of the longest word [bytes]

  /// Returns the words, one a line, for a file that read_words reads.
  std::string text() const;

 private:
  std::vector<std::string> words_;
  Marks marks_ = Marks::none_but_zero;
  WordIndex index_;
  std::uint16_t unknown_ = 0;
  std::size_t longest_ = 0;
};

/// Returns whether a list file can hold the word: it is not empty, has no ASCII blanks or control
/// characters, and does not begin with a byte-order mark.
bool is_listable(std::string_view word);

/// Reads the words of a file, one a line; a tab and what follows it (a count) are ignored. Throws
/// InputError with the line on a word that is not listable or occurred before; and on a file
/// without words.
std::vector<std::string> read_words(ByteReader& reader);

/// Throws InputError if `count` words and the marks exceed kMaxWords. source: origin of the words.
void check_word_count(std::size_t count, Marks marks, const std::string& source);

}  // namespace cudp
