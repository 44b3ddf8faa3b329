#pragma once
#include <cstdint>
#include <string>

#include "runtime/config/choices.hpp"

namespace cudp {

/// Method that splits a text into words; see tokenizer.hpp.
enum class Tokenizer { words, wordpiece };
/// Part of a text that is kept if the text is too long.
enum class Keep { last, first };

inline constexpr Choice<Tokenizer> kTokenizers[] = {{"words", Tokenizer::words},
                                                    {"wordpiece", Tokenizer::wordpiece}};
inline constexpr Choice<Keep> kKeeps[] = {{"last", Keep::last}, {"first", Keep::first}};

/// How texts are read. All of it is public: no length, count or quantile of private texts may
/// decide any of it.
struct TextOptions {
  std::int64_t tokens = 80;  ///< maximum number of words of a text
  Keep keep = Keep::last;
  Tokenizer tokenizer = Tokenizer::words;
  std::string vocabulary{};  ///< file with a list of words; empty: the embedding's own words
  std::int64_t vocabulary_size = 0;   ///< use only the first N words; 0: all
  bool vocabulary_is_public = false;  ///< the user declares that no private text decided the list
  std::string embedding{};            ///< a file, glove or minilm; empty: none
  std::string embedding_tensor{};     ///< tensor in a .safetensors file; empty: its only matrix
  /// Number of principal components; 0: the table's columns as they are.
  std::int64_t embedding_dims = 0;
  bool store_embedding = false;  ///< store the vectors in the released model

  bool operator==(const TextOptions&) const = default;
};

}  // namespace cudp
