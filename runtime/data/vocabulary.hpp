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

/// Hash map from words to their indices in a list.
class WordIndex {
 public:
  void add(std::string_view word) { numbers_.emplace(word, static_cast<int>(numbers_.size())); }
  bool contains(std::string_view word) const { return numbers_.contains(word); }
  /// Returns the index of the word in the list; -1 if the list does not have the word.
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

/// Special ids of a vocabulary (for unknown words, for the start and end of a text). They come
/// before the ids of words. Id 0 also fills the rest of a text that has fewer words than the
/// maximum.
enum class Marks {
  none_but_zero,  ///< 0: unknown words. For embeddings whose row 0 is zero.
  four            ///< 0: padding, 1: unknown words, 2: begin, 3: end of a text
};
constexpr int count_of(Marks marks) { return marks == Marks::four ? 4 : 1; }

/// Maximum number of word ids, which have 16 bits.
inline constexpr int kMaxWords = 65'536;

/// A list of words and their ids: first the special ids (Marks), then one id for each word, in the
/// order of the list.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Makes a vocabulary of these words. marks: the special ids in front of the words' ids. Throws
  /// Error unless the words are distinct, and the number of words and special ids is at most
  /// kMaxWords.
  Vocabulary(std::vector<std::string> words, Marks marks);

  const std::vector<std::string>& words() const { return words_; }
  Marks marks() const { return marks_; }
  /// Returns the number of ids: of special ids and words together. It is the number of rows of an
  /// embedding.
  int rows() const { return count_of(marks_) + static_cast<int>(words_.size()); }
  bool contains(std::string_view word) const { return index_.contains(word); }
  /// Returns the id of the word, or unknown() if it is not in the list.
  std::uint16_t number(std::string_view word) const;
  /// Returns the id of unknown words: the id of the word "[UNK]" if the list has it, otherwise the
  /// special id for unknown words.
  std::uint16_t unknown() const { return unknown_; }
  /// Returns the id of the marker at the beginning of a text. Valid only with Marks::four.
  std::uint16_t begin() const { return 2; }
  /// Returns the id of the marker at the end of a text. Valid only with Marks::four.
  std::uint16_t end() const { return 3; }
  std::size_t longest() const { return longest_; }  ///< size of the longest word [bytes]

  /// Returns the words, one per line, in the form that read_words() reads.
  std::string text() const;

 private:
  std::vector<std::string> words_;
  Marks marks_ = Marks::none_but_zero;
  WordIndex index_;
  std::uint16_t unknown_ = 0;
  std::size_t longest_ = 0;
};

/// Returns whether a word can be a line of a word list file: it is not empty, has no ASCII blanks
/// or control characters, and does not begin with a byte-order mark.
bool is_listable(std::string_view word);

/// Reads a word list, one word per line; if a line has a tab (e.g. in front of a count), the tab
/// and the text after it are ignored. Throws InputError if a line has an empty word, one with
/// blanks or control characters, or a word that occurred before, and if the file has no words.
/// reader: the file.
std::vector<std::string> read_words(ByteReader& reader);

/// Throws InputError if the number of words, `count`, and the number of special ids add up to more
/// than kMaxWords. source: origin of the words, for the message. marks: the special ids.
void check_word_count(std::size_t count, Marks marks, const std::string& source);

}  // namespace cudp
