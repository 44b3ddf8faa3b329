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

/// The coder of texts: it turns them into numbers of words, and these into vectors.
struct TextCoder {
  TextOptions options;
  Vocabulary vocabulary;
  std::shared_ptr<const WordVectors> vectors;  ///< [vocabulary.rows(), columns]; null: none
  std::string embedding_digest;  ///< SHA-256 of the file that the vectors are from; empty: none
};

/// Adds texts to a data set of shape {1, 1, options.tokens}. With four marks a text begins and ends
/// with one, before it is cut. A text may be empty. Depends on each text alone.
class TextEncoder {
 public:
  /// coder: must outlive the encoder.
  explicit TextEncoder(const TextCoder& coder) : coder_(coder) {}

  /// Appends the text's numbers and its length; not a label.
  void append(std::string_view text, Dataset& to) const;
  /// Numbers of all words, uncut.
  std::vector<std::uint16_t> numbers(std::string_view text) const;
  /// Says of an empty set what its examples will be.
  void describe(Dataset& set) const;

 private:
  const TextCoder& coder_;
};

/// The words that texts have most often, `count` of them at most, ties in byte order. Not private:
/// whoever calls this for private texts must say so in the certificate.
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

/// The path of a named file of words or vectors: the name itself, or below `dir` as the named data
/// sets and tables have it; an empty path where it is nowhere.
std::filesystem::path find_text_file(const std::string& name, const std::string& dir);

/// Whether this is the name of a table (glove, minilm) and not of a file.
bool is_named_embedding(const std::string& name);

/// The coder that the options ask for: the words of a list or, without one, of the embedding.
/// `counted`: words to use where the options name neither. Throws InputError where there are none,
/// or where vectors do not fit their words.
TextCoder make_coder(const TextOptions& options, const std::string& dir,
                     std::optional<std::vector<std::string>> counted = {});

/// The coder that a trained model was made with: its own words, and the vectors of the options'
/// embedding, if any. Throws InputError where that has another digest.
TextCoder restored_coder(const TextOptions& options, const std::string& dir,
                         std::vector<std::string> words, const std::string& embedding_digest);

}  // namespace cudp
