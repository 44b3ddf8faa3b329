#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// Name of the tensor with the words' vectors, if a released model stores them.
inline constexpr const char* kStoredVectors = "embedding.weight";

/// Name of the file of a model's words, in the model's folder.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

/// Writes to a model's metadata how its texts were read and which vectors were used: the name and
/// SHA-256 of their file or, with TextOptions::store_embedding, the vectors themselves.
void add_text(TensorFile& file, const TextCoder& coder);

/// Location of the vectors of a released model that does not store them.
struct VectorPlace {
  std::string file;  ///< replaces the file that the model names; empty: that file
  std::string dir;   ///< path of the data folder
};

/// Reads back the coder of a model's texts, with its words from the file in the model's folder.
/// Returns null if the model was trained on no texts. Throws InputError if the words or the vectors
/// are missing or differ from those it was trained with.
std::shared_ptr<const TextCoder> read_text(const TensorFile& file,
                                           const std::filesystem::path& model,
                                           const VectorPlace& vectors);

/// Properties of a released model's texts that its network depends on, read from the model's files
/// alone. columns: length of the vectors that it stores; 0 if they are in another file or if there
/// are none.
struct ReleasedWords {
  int rows = 0;
  int columns = 0;
  bool has_vectors = false;
};

/// Returns the properties; empty if the model was trained on no texts. Throws InputError if its
/// words are missing.
std::optional<ReleasedWords> released_words(const TensorFile& file,
                                            const std::filesystem::path& model);

}  // namespace cudp
