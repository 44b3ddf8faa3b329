#pragma once
#include <cstdint>
#include <string>

#include "runtime/config/choices.hpp"

namespace cudp {

/// How a text is split into words: into runs of letters and digits (`words`), or as BERT does
/// (`wordpiece`).
enum class Tokenizer { words, wordpiece };
/// Whether the last or the first words of a text are kept if it has more words than the maximum.
enum class Keep { last, first };

inline constexpr Choice<Tokenizer> kTokenizers[] = {{"words", Tokenizer::words},
                                                    {"wordpiece", Tokenizer::wordpiece}};
inline constexpr Choice<Keep> kKeeps[] = {{"last", Keep::last}, {"first", Keep::first}};

/// User options for texts. All of them are public: none may be chosen by looking at private texts.
struct TextOptions {
  std::int64_t tokens = 80;  ///< maximum number of words of a text
  Keep keep = Keep::last;
  Tokenizer tokenizer = Tokenizer::words;
  std::string vocabulary{};  ///< file with a list of words; empty: the embedding's own words
  std::int64_t vocabulary_size = 0;   ///< use only the first N words; 0: all
  bool vocabulary_is_public = false;  ///< the user declares that no private text decided the list
  /// Embedding with the vectors of words: a file, or the name glove or minilm; empty: none.
  std::string embedding{};
  /// Name of the tensor with the vectors, if the embedding is a .safetensors file; if empty, the
  /// file's only matrix is used.
  std::string embedding_tensor{};
  /// Number of principal components to which word vectors are reduced; 0 to use the vectors as they
  /// are.
  std::int64_t embedding_dims = 0;
  bool store_embedding = false;  ///< store the vectors in the released model

  bool operator==(const TextOptions&) const = default;
};

}  // namespace cudp
