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

/// Tokenizer options, vocabulary and vectors, with which a text is converted to word ids, and word
/// ids to embedding vectors.
struct TextCoder {
  TextOptions options;
  Vocabulary vocabulary;
  std::shared_ptr<const WordVectors> vectors;  ///< [vocabulary.rows(), columns]; null: none
  /// SHA-256 digest, hexadecimal, of the file from which the vectors were read; empty if there are
  /// no vectors.
  std::string embedding_digest;
};

/// Converts texts to word ids and appends them to a data set. Each text becomes an example with
/// options.tokens ids: a longer text is cut, a shorter one is followed by zeros. If the vocabulary
/// has the special ids Marks::four, begin and end markers are added before a text is cut, and count
/// as words. A text may be empty. The ids of a text do not depend on other texts.
class TextEncoder {
 public:
  /// Makes an encoder. coder: tokenizer, vocabulary and options with which texts are converted;
  /// must outlive the encoder.
  explicit TextEncoder(const TextCoder& coder) : coder_(coder) {}

  /// Appends the text's word ids and its number of words to `to`, but no label.
  void append(std::string_view text, Dataset& to) const;
  /// Returns the ids of all words of the text, with Marks::four also those of the begin and end
  /// markers. The list is not cut to options.tokens.
  std::vector<std::uint16_t> numbers(std::string_view text) const;
  /// Sets the shape, the vocabulary size and the embedding vectors of `set`, a data set that has no
  /// examples yet.
  void describe(Dataset& set) const;

 private:
  const TextCoder& coder_;
};

/// Counts words of texts, and returns the most frequent ones; equally frequent words are in byte
/// order. The result is exact, so it is not differentially private: a caller that counts private
/// texts must state this in the certificate.
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

/// Returns the path of a file with a list of words or with word vectors: `name` itself if it
/// exists, or the file of this name in a subfolder of `dir`, the folder of published data sets and
/// embeddings. Returns an empty path if there is none.
std::filesystem::path find_text_file(const std::string& name, const std::string& dir);

/// Returns whether `name` is the name of a published embedding (glove, minilm), not of a file.
bool is_named_embedding(const std::string& name);

/// Makes the tokenizer, vocabulary and vectors that the options describe. The words of the
/// vocabulary are those of the word list that the options name; without a list, those of the
/// embedding; without either, `counted`. Throws InputError if there are no words, or if the vectors
/// do not fit them. dir: folder of published data sets and embeddings.
TextCoder make_coder(const TextOptions& options, const std::string& dir,
                     std::optional<std::vector<std::string>> counted = {});

/// Makes the tokenizer, vocabulary and vectors of a trained model. words: the words of the model's
/// vocabulary. The vectors come from the embedding that the options name, if any. Throws InputError
/// if the SHA-256 of the embedding's file is not embedding_digest. dir: folder of published data
/// sets and embeddings.
TextCoder restored_coder(const TextOptions& options, const std::string& dir,
                         std::vector<std::string> words, const std::string& embedding_digest);

}  // namespace cudp
