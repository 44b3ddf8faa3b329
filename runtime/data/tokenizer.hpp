#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace cudp {

/// Callback that receives one token (word or part of a word) of a text. The token is valid until
/// the callback returns.
using UseToken = std::function<void(std::string_view)>;

/// Splits English text into words, after replacing A-Z by a-z and every "<br />" by a blank. A word
/// is a maximal run of the bytes a-z, 0-9 and ', without the apostrophes at its ends. A run of
/// apostrophes only is not a word. All other bytes separate words, including those of other
/// alphabets and of invalid UTF-8. use: called with each word.
void split_words(std::string_view text, const UseToken& use);

/// Returns whether the text `word` is a single word for split_words(), unchanged.
bool is_word(std::string_view word);

/// Splits text into words as BERT's uncased tokenizer does before WordPiece (Devlin et al. 2018;
/// google-research/bert, tokenization.py, BasicTokenizer). Drops control characters, removes
/// accents and converts to lower case. Blanks separate words; punctuation and Chinese characters
/// are words of their own. Every "<br />" becomes a blank first. Bytes that are not UTF-8 are
/// dropped. use: called with each word.
void split_basic(std::string_view text, const UseToken& use);

/// Splits a word into WordPieces: the longest piece of the vocabulary at the start of the word,
/// then repeatedly the longest piece that begins with "##" for the rest. is_piece: returns whether
/// the vocabulary has a piece. longest: size of its longest piece [bytes]. Returns false, without
/// calling `use`, if the word cannot be split so or has more than 100 characters.
bool split_pieces(std::string_view word, std::size_t longest,
                  const std::function<bool(std::string_view)>& is_piece, const UseToken& use);

}  // namespace cudp
