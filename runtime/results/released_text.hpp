#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/text.hpp"

namespace cudp {

/// Name of the tensor with the embedding of words, if a released model stores it.
inline constexpr const char* kStoredVectors = "embedding.weight";

/// Name of the file with the word list of a model of texts. The file is in the same folder as the
/// model's file.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

/// Writes to a model's file how texts are converted to word ids and which embedding was used: the
/// name and SHA-256 of its file or, with TextOptions::store_embedding, the vectors themselves.
void add_text(TensorFile& file, const TextCoder& coder);

/// Copies from `from` to `to` the metadata and tensors that add_text() writes, and nothing else.
/// model: path from which `from` was read. Throws InputError if the words or stored vectors are
/// missing, or if an option or digest is malformed.
void copy_text(const TensorFile& from, const std::filesystem::path& model, TensorFile& to);

/// Location of the embedding (word vectors) of a released model whose own file does not have it.
struct VectorPlace {
  std::string file;  ///< path of the file; empty: the file that the model names
  std::string dir;   ///< path of the data folder
};

/// Reads a released model's tokenizer, vocabulary and embedding; the words are in a file in the
/// model's folder. Returns null if the model was not trained on texts. Throws InputError if the
/// words or the embedding are missing, or differ from those with which the model was trained.
std::shared_ptr<const TextCoder> read_text(const TensorFile& file,
                                           const std::filesystem::path& model,
                                           const VectorPlace& vectors);

/// Properties of a text model's vocabulary that determine the shape of its network. rows: number of
/// word ids. columns: length of the word vectors that the model's file stores; 0 if another file
/// has them, or if the model uses none.
struct ReleasedWords {
  int rows = 0;
  int columns = 0;
  bool has_vectors = false;
};

/// Reads the number of word ids and the length of stored word vectors from the model's file and the
/// word list next to it; nullopt if the model was not trained on texts. model: path of the model's
/// file. Throws InputError if the word list is missing.
std::optional<ReleasedWords> released_words(const TensorFile& file,
                                            const std::filesystem::path& model);

}  // namespace cudp
