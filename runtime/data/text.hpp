#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/data/vocabulary.hpp"

namespace cudp {

/// Coder of texts: converts them to numbers of words, and those to vectors.
struct TextCoder {
  TextOptions options;
  Vocabulary vocabulary;
  std::shared_ptr<const WordVectors> vectors;  ///< [vocabulary.rows(), columns]; null: none
  std::string embedding_digest;  ///< SHA-256 of the file with the vectors; empty: none
};

/// Appends encoded texts to a data set of shape {1, 1, options.tokens}. With Marks::four a text
/// gets a begin and an end marker before it is cut to size. A text may be empty. The encoding
/// depends on the text alone.
class TextEncoder {
 public:
  /// coder: must outlive the encoder.
  explicit TextEncoder(const TextCoder& coder) : coder_(coder) {}

  /// Appends the text's numbers and its length, but no label.
  void append(std::string_view text, Dataset& to) const;
  /// Returns the numbers of all words, not cut to size.
  std::vector<std::uint16_t> numbers(std::string_view text) const;
  /// Sets shape, number of words and vectors of an empty data set.
  void describe(Dataset& set) const;

 private:
  const TextCoder& coder_;
};

/// Finds the `count` most frequent words of texts; ties are in byte order. The result is not
/// private: a caller that counts private texts must state this in the certificate.
class WordCounter {
 public:
  void add(std::string_view text);
  std::vector<std::string> most_frequent(std::size_t count) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
};

/// Returns the path of a file of words or vectors: the name itself, or below `dir` in the folders
/// of the named data sets and embeddings; an empty path if there is none.
std::filesystem::path find_text_file(const std::string& name, const std::string& dir);

/// Returns whether this is the name of an embedding (glove, minilm) and not of a file.
bool is_named_embedding(const std::string& name);

/// Makes the coder that the options describe, with the words of a list or, without one, of the
/// embedding. `counted`: words to use if the options name neither. Throws InputError if there are
/// no words, or if the vectors do not fit the words.
TextCoder make_coder(const TextOptions& options, const std::string& dir,
                     std::optional<std::vector<std::string>> counted = {});

/// Makes the coder of a trained model: with the model's words, and the vectors of the options'
/// embedding, if any. Throws InputError if the embedding has another digest than embedding_digest.
TextCoder restored_coder(const TextOptions& options, const std::string& dir,
                         std::vector<std::string> words, const std::string& embedding_digest);

}  // namespace cudp
