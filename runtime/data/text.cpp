#include "runtime/data/text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/published.hpp"
#include "runtime/data/tokenizer.hpp"
#include "runtime/data/word_vectors.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPresetsList = "public20k_words.txt";

/// One of the files with the vectors of a published embedding (glove, minilm) that users give by
/// name. The first file of an embedding that exists is read: the one that scripts/fetch_data.sh
/// downloads, or else a smaller one made from it. file, words: file names, as find_text_file()
/// takes them. words: the file with the words of the rows, or "" if `file` has the words. tensor:
/// name of the tensor with the vectors, or "" if `file` has only one.
struct NamedEmbedding {
  const char* name;
  const char* file;
  const char* tensor;
  const char* words;
};
constexpr std::array<NamedEmbedding, 4> kNamedEmbeddings = {{
    {"glove", "glove/glove.6B.50d.txt", "", ""},
    {"glove", "public20k_glove50.safetensors", "", kPresetsList},
    {"minilm", "minilm/model.safetensors", "embeddings.word_embeddings.weight", "minilm/vocab.txt"},
    {"minilm", "wordpiece30522_minilm100.safetensors", "", "wordpiece30522_vocab.txt"},
}};

/// Returns the path of a public file that the user names, of words or of vectors. Throws InputError
/// if there is none, or if it is in the folder of a training that a tuning made: its words and
/// vectors get into the model, and the tuning's guarantee holds if the best training alone is
/// released.
fs::path require_text_file(const char* flag, const std::string& name, const std::string& dir) {
  fs::path path = find_text_file(name, dir);
  if (path.empty())
    bad_input(flag, "", "a file, here or in " + (fs::path(dir) / "imdb").string(),
              shown(name, 200) + ", which is neither");
  if (const std::string tuning = tuning_of(path).string(); !tuning.empty())
    throw InputError(std::string(flag) + " " + name +
                     ": expected a public file, found one of a training of a tuning, which "
                     "releases the best one alone: " +
                     tuning + "/release (cudp tune --resume " + tuning + " finishes it)");
  return path;
}

std::vector<std::string> read_list(const fs::path& path, const Claim& claim = {}) {
  std::vector<std::string> words;
  read_claimed(path, claim, [&](ByteReader& reader) { words = read_words(reader); });
  return words;
}

/// Returns the claim that a file is a file of a published embedding and has the published content,
/// for check_claim() and read_claimed(). named: the embedding. file: path of the file.
Claim claim_of(const NamedEmbedding& named, const fs::path& file) {
  return {.set = named.name,
          .file = file.filename(),
          .own = "for vectors of your own: --embedding FILE"};
}

/// Returns the claim about a file with a word list, for read_claimed(). If the user declares the
/// list public, and the file has the name of the list that presets use, the claim is that the file
/// has the published content. Otherwise the file is the user's own list, and its content is not
/// checked.
Claim claim_of_list(const TextOptions& options, const fs::path& file) {
  if (!options.vocabulary_is_public || file.filename() != kPresetsList) return {};
  return {.set = "glove", .file = kPresetsList, .own = "give a list of your own another name"};
}

/// Reads the vectors of a published embedding from `file`, and the words of their rows from another
/// file if `named` has one. Checks that both have the published content. dir: folder of published
/// data sets and embeddings.
VectorTable read_named(const NamedEmbedding& named, const fs::path& file, const std::string& dir) {
  VectorTable table = read_vectors(*open_bytes(file), named.tensor);
  check_claim(file, claim_of(named, file), table.digest);
  if (*named.words == '\0') return table;
  const fs::path list = require_text_file("--embedding", named.words, dir);
  table.words = read_list(list, claim_of(named, list));
  if (table.words.size() != static_cast<std::size_t>(table.vectors.rows))
    bad_input(file.string(), "",
              std::to_string(table.words.size()) + " rows, as " + list.string() + " has words",
              std::to_string(table.vectors.rows));
  return table;
}

VectorTable read_embedding(const TextOptions& options, const std::string& dir) {
  if (!is_named_embedding(options.embedding))
    return read_vectors(*open_bytes(require_text_file("--embedding", options.embedding, dir)),
                        options.embedding_tensor);
  for (const NamedEmbedding& named : kNamedEmbeddings) {
    if (options.embedding != named.name) continue;
    if (const fs::path file = find_text_file(named.file, dir); !file.empty())
      return read_named(named, file, dir);
  }
  bad_input(dir, "", "the files of --embedding " + options.embedding,
            "none; scripts/fetch_data.sh " + options.embedding + " downloads them");
}

/// Returns the embedding that the options name, reduced to its first principal components if the
/// options request that; nullopt if they name no embedding. dir: folder of published data sets and
/// embeddings.
std::optional<VectorTable> embedding_of(const TextOptions& options, const std::string& dir) {
  if (options.embedding.empty()) {
    if (options.embedding_dims != 0 || !options.embedding_tensor.empty() || options.store_embedding)
      throw InputError(
          "--embedding: expected a table of vectors with the other options of it, "
          "found none");
    return std::nullopt;
  }
  VectorTable table = read_embedding(options, dir);
  if (options.embedding_dims > 0) reduce(table, static_cast<int>(options.embedding_dims));
  return table;
}

/// Returns those words of an embedding table that can be in a vocabulary: words that the tokenizer
/// can produce, or, with the WordPiece tokenizer, words that can be a line of a word list file.
std::vector<std::string> own_words(const VectorTable& table, Tokenizer tokenizer) {
  std::vector<std::string> words;
  for (const std::string& word : table.words)
    if (tokenizer == Tokenizer::wordpiece ? is_listable(word) : is_word(word))
      words.push_back(word);
  return words;
}

/// Returns the words of the vocabulary: those of the word list that the options name; if they name
/// none, those of the embedding table; if there is no table, `counted`. dir: folder of published
/// data sets and embeddings.
std::vector<std::string> words_of(const TextOptions& options, const std::string& dir,
                                  const std::optional<VectorTable>& table,
                                  std::optional<std::vector<std::string>> counted) {
  if (!options.vocabulary.empty()) {
    const fs::path list = require_text_file("--vocabulary", options.vocabulary, dir);
    std::vector<std::string> words = read_list(list, claim_of_list(options, list));
    const bool by_row = table && table->words.empty();
    if (by_row && words.size() != static_cast<std::size_t>(table->vectors.rows))
      bad_input(table->source, "",
                std::to_string(words.size()) + " rows, as " + list.string() + " has words",
                std::to_string(table->vectors.rows));
    return words;
  }
  if (table && table->words.empty())
    bad_input("--vocabulary", "", "the words of the rows of " + table->source, "none");
  if (table) return own_words(*table, options.tokenizer);
  if (!counted)
    throw InputError(
        "--vocabulary: expected a list of words, or vectors with words of their own (--embedding), "
        "found neither; --accept-private-bounds counts the words of the private texts");
  return *std::move(counted);
}

TextCoder assemble(const TextOptions& options, std::vector<std::string> words,
                   const std::optional<VectorTable>& table) {
  const Marks marks = table ? Marks::none_but_zero : Marks::four;
  TextCoder coder{.options = options,
                  .vocabulary = Vocabulary(std::move(words), marks),
                  .vectors = nullptr,
                  .embedding_digest = table ? table->digest : ""};
  if (table) coder.vectors = vectors_of(coder.vocabulary, *table);
  return coder;
}

}  // namespace

void TextEncoder::describe(Dataset& set) const {
  set.shape = {1, 1, static_cast<int>(coder_.options.tokens)};
  set.words = coder_.vocabulary.rows();
  set.vectors = coder_.vectors;
}

std::vector<std::uint16_t> TextEncoder::numbers(std::string_view text) const {
  const Vocabulary& v = coder_.vocabulary;
  std::vector<std::uint16_t> out;
  const auto put = [&](std::string_view word) { out.push_back(v.number(word)); };
  const bool marked = v.marks() == Marks::four;
  if (marked) out.push_back(v.begin());
  if (coder_.options.tokenizer == Tokenizer::words) {
    split_words(text, put);
  } else {
    const auto is_piece = [&](std::string_view piece) { return v.contains(piece); };
    split_basic(text, [&](std::string_view word) {
      if (!split_pieces(word, v.longest(), is_piece, put)) out.push_back(v.unknown());
    });
  }
  if (marked) out.push_back(v.end());
  return out;
}

void TextEncoder::append(std::string_view text, Dataset& to) const {
  const auto max_tokens = static_cast<std::size_t>(coder_.options.tokens);
  const std::vector<std::uint16_t> all = numbers(text);
  const std::size_t kept = std::min(all.size(), max_tokens);
  const std::size_t first = coder_.options.keep == Keep::last ? all.size() - kept : 0;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  to.tokens.insert(to.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(kept));
  to.tokens.resize(to.tokens.size() + max_tokens - kept);
  to.lengths.push_back(static_cast<std::uint16_t>(kept));
}

void WordCounter::add(std::string_view text) {
  split_words(text, [&](std::string_view word) {
    const auto at = counts_.find(word);
    if (at != counts_.end())
      ++at->second;
    else
      counts_.emplace(word, 1);
  });
}

std::vector<std::string> WordCounter::most_frequent(std::size_t count) const {
  std::vector<std::pair<std::string_view, std::uint64_t>> all(counts_.begin(), counts_.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) words.emplace_back(all[i].first);
  return words;
}

fs::path find_text_file(const std::string& name, const std::string& dir) {
  const fs::path top = dir.empty() ? "data" : dir;
  for (const fs::path& folder : {fs::path(), top, top / "imdb", top / "imdb" / "embeddings",
                                 top / "glove", top / "minilm"}) {
    std::error_code ignored;
    fs::path path = folder / name;
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return {};
}

bool is_named_embedding(const std::string& name) {
  return std::any_of(kNamedEmbeddings.begin(), kNamedEmbeddings.end(),
                     [&](const NamedEmbedding& named) { return name == named.name; });
}

TextCoder make_coder(const TextOptions& options, const std::string& dir,
                     std::optional<std::vector<std::string>> counted) {
  const std::optional<VectorTable> table = embedding_of(options, dir);
  std::vector<std::string> words = words_of(options, dir, table, std::move(counted));
  const auto max_words = static_cast<std::size_t>(options.vocabulary_size);
  if (max_words > 0 && words.size() > max_words) words.resize(max_words);
  check_word_count(words.size(), table ? Marks::none_but_zero : Marks::four,
                   options.vocabulary.empty() ? options.embedding : options.vocabulary);
  return assemble(options, std::move(words), table);
}

TextCoder restored_coder(const TextOptions& options, const std::string& dir,
                         std::vector<std::string> words, const std::string& embedding_digest) {
  const std::optional<VectorTable> table = embedding_of(options, dir);
  if (table && table->digest != embedding_digest)
    bad_input(table->source, "",
              "the vectors that the model was trained with, sha256 " + embedding_digest,
              table->digest);
  return assemble(options, std::move(words), table);
}

}  // namespace cudp
