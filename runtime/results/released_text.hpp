#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// The tensor of a released model that has its words' vectors, where they are stored.
inline constexpr const char* kStoredVectors = "embedding.weight";

/// The file of a model's words, beside the model.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

/// Says in a model's metadata how its texts were read, and by which vectors: their file's name and
/// SHA-256 or, with TextOptions::store_embedding, themselves.
void add_text(TensorFile& file, const TextCoder& coder);

/// The place of the vectors of a released model, if it does not hold them.
struct VectorPlace {
  std::string file;  ///< in place of the file that the model names; empty: that one
  std::string dir;   ///< the data folder
};

/// Reads back what texts of a model were read with, its words from the file beside it; null where
/// it was trained on none. Throws InputError where the words or the vectors are missing or others.
std::shared_ptr<const TextCoder> read_text(const TensorFile& file,
                                           const std::filesystem::path& model,
                                           const VectorPlace& vectors);

/// The properties of a released model's texts that its network depends on, by its files alone.
/// columns: of vectors that it holds; 0 where these are in a file of their own, or where it has
/// none.
struct ReleasedWords {
  int rows = 0;
  int columns = 0;
  bool has_vectors = false;
};

/// Empty where the model was trained on no texts. Throws InputError where its words are missing.
std::optional<ReleasedWords> released_words(const TensorFile& file,
                                            const std::filesystem::path& model);

}  // namespace cudp
