#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace cudp {

/// Receives a token, which is valid until the call returns.
using UseToken = std::function<void(std::string_view)>;

/// Splits English text into words: A-Z become a-z, and every "<br />" a blank. A token is a maximal
/// run of bytes a-z, 0-9 and ', without apostrophes at its ends, if anything is left. All other
/// bytes separate words, including those of other alphabets and of invalid UTF-8.
void split_words(std::string_view text, const UseToken& use);

/// Returns whether split_words splits `word` into exactly itself.
bool is_word(std::string_view word);

/// Splits text into words as BERT's uncased tokenizer does before it looks for pieces (Devlin et
/// al. 2018; google-research/bert, tokenization.py, BasicTokenizer). It drops control characters,
/// removes accents and converts to lower case. Blanks separate words; punctuation and Chinese
/// characters are words of their own. Every "<br />" becomes a blank first. Bytes that are not
/// UTF-8 count as U+FFFD, which is dropped.
void split_basic(std::string_view text, const UseToken& use);

/// Splits a word of split_basic into pieces: the longest piece of the vocabulary from the start of
/// the word, then again from there with pieces that begin with "##". is_piece: returns whether the
/// vocabulary has a piece. longest: size of its longest entry in bytes. Returns false, without a
/// call of `use`, if the word cannot be split so or has more than 100 characters.
bool split_pieces(std::string_view word, std::size_t longest,
                  const std::function<bool(std::string_view)>& is_piece, const UseToken& use);

}  // namespace cudp
