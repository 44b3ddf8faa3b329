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

/// A position by its word.
class WordIndex {
 public:
  void add(std::string_view word) { numbers_.emplace(word, static_cast<int>(numbers_.size())); }
  bool contains(std::string_view word) const { return numbers_.contains(word); }
  /// -1 where the word is not there.
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

/// Rows before those of words. Number 0 also stands behind a text's end.
enum class Marks {
  none_but_zero,  ///< 0: unknown words; for tables of vectors, whose row 0 is zero
  four            ///< 0, then unknown words, a text's beginning, its end
};
constexpr int count_of(Marks marks) { return marks == Marks::four ? 4 : 1; }

inline constexpr int kMaxWords = 65'536;  ///< rows: numbers of words are 16 bits

/// Words and their numbers, from 0: marks, then words in the order of the list.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// words: all different and listable; with the marks at most kMaxWords.
  Vocabulary(std::vector<std::string> words, Marks marks);

  const std::vector<std::string>& words() const { return words_; }
  Marks marks() const { return marks_; }
  /// Numbers that there are.
  int rows() const { return count_of(marks_) + static_cast<int>(words_.size()); }
  bool contains(std::string_view word) const { return index_.contains(word); }
  /// Number of the word, or of unknown ones.
  std::uint16_t number(std::string_view word) const;
  /// Number of the list's own word for unknown ones, "[UNK]", where it has that, or of the mark.
  std::uint16_t unknown() const { return unknown_; }
  /// Numbers of the begin and end markers; only valid with Marks::four.
  std::uint16_t begin() const { return 2; }
  std::uint16_t end() const { return 3; }
  std::size_t longest() const { return longest_; }  ///< bytes of the longest word

  /// A line a word: a file that read_words reads.
  std::string text() const;

 private:
  std::vector<std::string> words_;
  Marks marks_ = Marks::none_but_zero;
  WordIndex index_;
  std::uint16_t unknown_ = 0;
  std::size_t longest_ = 0;
};

/// Whether a list can hold the word and be read to the same again: it is not empty, has no blanks
/// and control characters of ASCII, and does not begin with a byte-order mark.
bool is_listable(std::string_view word);

/// The words of a file: a line each, what follows a tab (a count) left out. Throws InputError with
/// the line on a word that is not listable or came before; and on a file without words.
std::vector<std::string> read_words(ByteReader& reader);

/// Throws InputError unless `count` words and as many marks fit; `source` is where they are from.
void check_word_count(std::size_t count, Marks marks, const std::string& source);

}  // namespace cudp
