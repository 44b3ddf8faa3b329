#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace cudp {

/// Takes a token; valid until the call returns.
using UseToken = std::function<void(std::string_view)>;

/// Words of English text: A-Z become a-z, every "<br />" a blank; a token is a longest run of bytes
/// of a-z, 0-9 and ', less the apostrophes at its ends, if anything is left. All other bytes
/// separate, those of other alphabets and of no valid UTF-8 too.
void split_words(std::string_view text, const UseToken& use);

/// Whether split_words gives `word` itself, and nothing else.
bool is_word(std::string_view word);

/// Words as BERT's uncased tokenizer splits them before it looks for pieces (Devlin et al. 2018;
/// google-research/bert, tokenization.py, BasicTokenizer): control characters dropped, accents
/// taken off, lower case; blanks separate, punctuation and Chinese characters are words of their
/// own. Every "<br />" is a blank first. What is not UTF-8 counts as U+FFFD, which is dropped.
void split_basic(std::string_view text, const UseToken& use);

/// The pieces of one word of split_basic: from its start the longest piece that the vocabulary has,
/// and so on with pieces that begin with "##". `is_piece` says what the vocabulary has; `longest`,
/// the bytes of its longest entry. Gives nothing and returns false where the word has no such
/// pieces, or more than 100 characters.
bool split_pieces(std::string_view word, std::size_t longest,
                  const std::function<bool(std::string_view)>& is_piece, const UseToken& use);

}  // namespace cudp
