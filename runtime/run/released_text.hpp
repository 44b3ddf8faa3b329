#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// The file of a model's words, beside the model.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

/// Says in a model's metadata how its texts were read, and by which vectors: their file's name and
/// SHA-256 or, with TextOptions::store_embedding, themselves.
void add_text(TensorFile& file, const TextCoder& coder);

/// Where the vectors of a released model are, if it does not hold them.
struct VectorPlace {
  std::string file;  ///< in place of the file that the model names; empty: that one
  std::string dir;   ///< the data folder
};

/// Reads back what texts of a model were read with, its words from the file beside it; null where
/// it was trained on none. Throws InputError where the words or the vectors are missing or others.
std::shared_ptr<const TextCoder> read_text(const TensorFile& file,
                                           const std::filesystem::path& model,
                                           const VectorPlace& vectors);

}  // namespace cudp
