#include "runtime/data/vocabulary.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/data/csv.hpp"

namespace cudp {

Vocabulary::Vocabulary(std::vector<std::string> words, Marks marks)
    : words_(std::move(words)), marks_(marks), unknown_(marks == Marks::four ? 1 : 0) {
  ensure(rows() <= kMaxWords, "a vocabulary's words must have 16-bit numbers");
  for (const std::string& word : words_) {
    index_.add(word);
    longest_ = std::max(longest_, word.size());
  }
  ensure(index_.size() == words_.size(), "a vocabulary's words must differ");
  if (contains("[UNK]")) unknown_ = number("[UNK]");
}

std::uint16_t Vocabulary::number(std::string_view word) const {
  const int at = index_.find(word);
  return at < 0 ? unknown_ : static_cast<std::uint16_t>(at + count_of(marks_));
}

std::string Vocabulary::text() const {
  std::string lines;
  for (const std::string& word : words_) lines.append(word).append("\n");
  return lines;
}

bool is_listable(std::string_view word) {
  return !word.empty() && !word.starts_with(kByteOrderMark) &&
         std::none_of(word.begin(), word.end(),
                      [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
}

std::vector<std::string> read_words(ByteReader& reader) {
  LineReader lines(reader);
  WordIndex seen;
  std::vector<std::string> words;
  for (std::string_view line; lines.next(line);) {
    const std::string_view word = line.substr(0, line.find('\t'));
    const std::string place = "line " + std::to_string(lines.number());
    if (!is_listable(word))
      bad_input(reader.name(), place, "a word, or a word, a tab and its count", shown(line));
    if (seen.contains(word)) bad_input(reader.name(), place, "a word once", shown(word) + " again");
    seen.add(word);
    words.emplace_back(word);
  }
  if (words.empty()) bad_input(reader.name(), "", "a word a line", "none");
  return words;
}

void check_word_count(std::size_t count, Marks marks, const std::string& source) {
  const std::size_t max_words = kMaxWords - static_cast<std::size_t>(count_of(marks));
  if (count > max_words)
    bad_input(source, "",
              "at most " + std::to_string(max_words) + " words (--vocabulary-size takes the first)",
              std::to_string(count));
}

}  // namespace cudp
