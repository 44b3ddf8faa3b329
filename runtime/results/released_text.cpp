#include "runtime/results/released_text.hpp"

#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/config/option.hpp"
#include "runtime/settings/options.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Key of the model file's metadata: SHA-256 of the file of word vectors.
constexpr const char* kDigest = "embedding-sha256";
/// Options for texts that the model file's metadata has, each under its key.
constexpr std::array kStored = {"tokens",           "keep",           "tokenizer",      "embedding",
                                "embedding-tensor", "embedding-dims", "store-embedding"};

std::string stored_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : value_text(value);
}

TextOptions read_options(const TensorFile& file, const std::string& source) {
  TrainConfig stored;
  for (const char* key : kStored) {
    const auto at = file.metadata.find(key);
    if (at == file.metadata.end()) continue;
    const Option& option = *find_option(key);
    const std::string where = source + ", " + key;
    option.set(stored, parse_value(option, at->second, where), where);
  }
  return stored.of<TextOptions>();
}

std::vector<std::string> read_vocabulary(const fs::path& model) {
  const fs::path path = model.parent_path() / kVocabularyFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw InputError(path.string() + ": expected the words of " + model.string() + ", found none");
  return read_words(*open_bytes(path));
}

/// Returns the embedding that the model's file stores, [rows, columns].
std::shared_ptr<const WordVectors> stored_vectors(const TensorFile& file, int rows,
                                                  const std::string& source) {
  for (const ParameterTensor& t : file.tensors) {
    if (t.name != kStoredVectors || t.shape.size() != 2 || t.shape[0] != rows) continue;
    auto vectors = std::make_shared<WordVectors>();
    *vectors = {t.shape[0], t.shape[1], {}};
    const auto begin = file.values.begin() + static_cast<std::ptrdiff_t>(t.offset);
    vectors->values.assign(begin, begin + static_cast<std::ptrdiff_t>(t.size));
    return vectors;
  }
  throw InputError(source + ": expected a tensor " + kStoredVectors + " of " +
                   std::to_string(rows) + " rows, as " + kVocabularyFile +
                   " has words, found none");
}

/// Writes to a model's file the options of its texts, the SHA-256 of the embedding and, unless
/// null, the embedding's vectors.
void add_text(TensorFile& file, const TextOptions& given, const std::string& digest,
              const WordVectors* vectors) {
  TrainConfig config;
  TextOptions& options = config.of<TextOptions>();
  options = given;
  options.embedding = fs::path(options.embedding).filename().string();
  for (const char* key : kStored)
    if (std::string value = stored_text(*find_option(key)->get(config)); !value.empty())
      file.metadata[key] = std::move(value);
  file.metadata[kDigest] = digest;
  if (vectors == nullptr) return;
  file.tensors.push_back({.name = kStoredVectors,
                          .shape = {vectors->rows, vectors->columns},
                          .offset = file.values.size(),
                          .size = vectors->values.size()});
  file.values.insert(file.values.end(), vectors->values.begin(), vectors->values.end());
}

}  // namespace

void add_text(TensorFile& file, const TextCoder& coder) {
  add_text(file, coder.options, coder.embedding_digest,
           coder.options.store_embedding ? coder.vectors.get() : nullptr);
}

void copy_text(const TensorFile& from, const fs::path& model, TensorFile& to) {
  const auto digest = from.metadata.find(kDigest);
  if (digest == from.metadata.end()) return;
  const std::string source = model.string();
  const bool is_digest =
      digest->second.empty() ||
      (digest->second.size() == 64 &&
       digest->second.find_first_not_of("0123456789abcdef") == std::string::npos);
  if (!is_digest)
    throw InputError(source + ", " + kDigest + ": expected a SHA-256, found another text");
  const TextOptions options = read_options(from, source);
  std::shared_ptr<const WordVectors> vectors;
  if (options.store_embedding)
    vectors = stored_vectors(from, released_words(from, model)->rows, source);
  add_text(to, options, digest->second, vectors.get());
}

std::shared_ptr<const TextCoder> read_text(const TensorFile& file, const fs::path& model,
                                           const VectorPlace& place) {
  const auto digest = file.metadata.find(kDigest);
  if (digest == file.metadata.end()) return nullptr;
  const std::string source = model.string();
  TextOptions options = read_options(file, source);
  std::vector<std::string> words = read_vocabulary(model);
  const Marks marks = options.embedding.empty() ? Marks::four : Marks::none_but_zero;
  check_word_count(words.size(), marks, source);
  if (options.store_embedding) {
    Vocabulary vocabulary(std::move(words), marks);
    auto vectors = stored_vectors(file, vocabulary.rows(), source);
    return std::make_shared<TextCoder>(
        TextCoder{options, std::move(vocabulary), std::move(vectors), digest->second});
  }
  if (!place.file.empty()) {
    if (options.embedding.empty() || is_named_embedding(options.embedding))
      throw InputError("--embedding: expected none" +
                       (options.embedding.empty()
                            ? std::string(" for a model without vectors")
                            : ", but --data-dir with the files of " + options.embedding) +
                       ", found " + place.file);
    options.embedding = place.file;
  }
  return std::make_shared<TextCoder>(
      restored_coder(options, place.dir, std::move(words), digest->second));
}

std::optional<ReleasedWords> released_words(const TensorFile& file, const fs::path& model) {
  if (!file.metadata.contains(kDigest)) return std::nullopt;
  const std::string source = model.string();
  const TextOptions options = read_options(file, source);
  std::vector<std::string> words = read_vocabulary(model);
  const Marks marks = options.embedding.empty() ? Marks::four : Marks::none_but_zero;
  check_word_count(words.size(), marks, source);
  ReleasedWords r{.rows = Vocabulary(std::move(words), marks).rows(),
                  .has_vectors = !options.embedding.empty()};
  if (options.store_embedding) r.columns = stored_vectors(file, r.rows, source)->columns;
  return r;
}

}  // namespace cudp
