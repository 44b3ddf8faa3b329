#pragma once
#include <cstdint>
#include <string>

#include "runtime/config/choices.hpp"

namespace cudp {

/// How a text becomes words; see tokenizer.hpp.
enum class Tokenizer { words, wordpiece };
/// Which end of a text that is too long stays.
enum class Keep { last, first };

inline constexpr Choice<Tokenizer> kTokenizers[] = {{"words", Tokenizer::words},
                                                    {"wordpiece", Tokenizer::wordpiece}};
inline constexpr Choice<Keep> kKeeps[] = {{"last", Keep::last}, {"first", Keep::first}};

/// How texts are read. All of it is public: no length, count or quantile of private texts may
/// decide any of it.
struct TextOptions {
  std::int64_t tokens = 80;  ///< most words of a text
  Keep keep = Keep::last;
  Tokenizer tokenizer = Tokenizer::words;
  std::string vocabulary{};           ///< a file; empty: the embedding's own words
  std::int64_t vocabulary_size = 0;   ///< first so many words; 0: all
  bool vocabulary_is_public = false;  ///< the user says that no private text decided it
  std::string embedding{};            ///< a file, glove or minilm; empty: none
  std::string embedding_tensor{};     ///< of a .safetensors file; empty: its only matrix
  std::int64_t embedding_dims = 0;    ///< principal components; 0: as the table is
  bool store_embedding = false;       ///< put the vectors into the released model

  bool operator==(const TextOptions&) const = default;
};

}  // namespace cudp
