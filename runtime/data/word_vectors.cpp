#include "runtime/data/word_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/base/eigenvectors.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/csv.hpp"
#include "runtime/data/published.hpp"
#include "runtime/data/tokenizer.hpp"

namespace cudp {
namespace {

/// Maximum size of a file of word vectors [bytes].
constexpr std::uint64_t kLongestTable = std::uint64_t{8} << 30;
/// Maximum number of elements of a word vector.
constexpr int kMaxColumns = 4096;
/// Root mean square of the elements of word vectors after they were reduced to principal
/// components; turned() scales them to it.
constexpr double kRootMeanSquare = 0.4;

/// Parses the numbers of a line of GloVe's format, which follow the word and a blank, and appends
/// them to `values`. Returns how many there are, or -1 if one of them is not a finite number.
int append_numbers(std::string_view line, std::vector<float>& values) {
  int count = 0;
  for (std::size_t at = line.find(' '); at != std::string_view::npos; at = line.find(' ')) {
    line.remove_prefix(std::min(line.find_first_not_of(' ', at), line.size()));
    if (line.empty()) break;
    const auto x = read_number<float>(line.substr(0, line.find(' ')));
    if (!x || !std::isfinite(*x)) return -1;
    values.push_back(*x);
    ++count;
  }
  return count;
}

/// Reads GloVe's text format. A first line of two numbers, which word2vec and fastText write, is
/// skipped. text: the file's content. source: name of the file, for messages.
VectorTable read_glove(std::string_view text, const std::string& source) {
  const auto reader =
      memory_bytes(source, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  LineReader lines(*reader);
  VectorTable table;
  WordIndex seen;
  WordVectors& v = table.vectors;
  for (std::string_view line; lines.next(line);) {
    const std::string place = "line " + std::to_string(lines.number());
    const std::string_view word = line.substr(0, line.find(' '));
    const int count = append_numbers(line, v.values);
    if (lines.number() == 1 && count == 1 &&
        word.find_first_not_of("0123456789") == std::string_view::npos) {
      v.values.clear();
      continue;
    }
    if (word.empty() || count < 1 || count > kMaxColumns)
      bad_input(source, place, "a word and its finite numbers, blanks between", shown(line));
    if (v.columns == 0) v.columns = count;
    if (count != v.columns)
      bad_input(source, place, std::to_string(v.columns) + " numbers as in the lines before",
                std::to_string(count));
    if (seen.contains(word)) bad_input(source, place, "a word once", shown(word) + " again");
    seen.add(word);
    table.words.emplace_back(word);
    ++v.rows;
  }
  return table;
}

VectorTable read_tensor(std::string_view bytes, const std::string& source,
                        const std::string& tensor) {
  Matrix matrix = decode_matrix(bytes, source, tensor);
  VectorTable table;
  table.vectors = {matrix.rows, matrix.columns, std::move(matrix.values)};
  return table;
}

/// Returns whether the bytes are the start of a safetensors file. It begins with the length of its
/// header (64 bits, the highest byte 0) and "{"; no line of a text file begins so.
bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 8 && bytes[8] == '{' && bytes[7] == '\0';
}

/// Returns the scatter matrix of the vectors, [d, d], with d the number of columns. Element (i, j)
/// is the sum over all rows of the product of columns i and j, after subtracting the columns'
/// means.
std::vector<double> scatter_of(const WordVectors& v, std::span<const double> means) {
  const auto d = static_cast<std::size_t>(v.columns);
  std::vector<double> sums(d * d);
  std::vector<double> row(d);
  for (std::size_t r = 0; r < static_cast<std::size_t>(v.rows); ++r) {
    for (std::size_t i = 0; i < d; ++i) row[i] = v.values[r * d + i] - means[i];
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j <= i; ++j) sums[i * d + j] += row[i] * row[j];
  }
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < i; ++j) sums[j * d + i] = sums[i * d + j];
  return sums;
}

std::vector<double> column_means(const WordVectors& v) {
  const auto d = static_cast<std::size_t>(v.columns);
  std::vector<double> means(d);
  for (std::size_t i = 0; i < v.values.size(); ++i) means[i % d] += v.values[i];
  for (double& m : means) m /= v.rows;
  return means;
}

/// Projects word vectors on principal components: subtracts `means` from each row, multiplies it
/// with `directions` [dims, d], where d is the number of columns, and scales all results to a root
/// mean square of kRootMeanSquare. Returns the results, [rows, dims].
std::vector<float> turned(const WordVectors& v, std::span<const double> means,
                          const std::vector<float>& directions, int dims) {
  const auto d = static_cast<std::size_t>(v.columns);
  const auto k = static_cast<std::size_t>(dims);
  std::vector<double> parts(static_cast<std::size_t>(v.rows) * k);
  double squares = 0.0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(v.rows); ++r)
    for (std::size_t c = 0; c < k; ++c) {
      double sum = 0.0;
      for (std::size_t i = 0; i < d; ++i)
        sum += (v.values[r * d + i] - means[i]) * static_cast<double>(directions[c * d + i]);
      parts[r * k + c] = sum;
      squares += sum * sum;
    }
  const double scale =
      squares > 0.0 ? kRootMeanSquare / std::sqrt(squares / static_cast<double>(parts.size()))
                    : 0.0;
  std::vector<float> out(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) out[i] = static_cast<float>(scale * parts[i]);
  return out;
}

/// Function object that finds the rows of an embedding table for a word: the word's vector is the
/// mean of these rows. Returns no rows if the table has neither the word nor its parts.
class RowsOfWords {
 public:
  explicit RowsOfWords(const VectorTable& table) {
    for (const std::string& word : table.words) {
      index_.add(word);
      longest_ = std::max(longest_, word.size());
      pieces_ = pieces_ || word.starts_with("##");
    }
  }

  std::vector<int> operator()(std::string_view word) const {
    if (const int row = index_.find(word); row >= 0) return {row};
    if (pieces_) return of_pieces(word);
    const Clitic parts = split_clitic(word);
    const int stem = index_.find(parts.stem), ending = index_.find(parts.ending);
    if (stem < 0 || ending < 0) return {};
    return {stem, ending};
  }

 private:
  std::vector<int> of_pieces(std::string_view word) const {
    std::vector<int> rows;
    split_basic(word, [&](std::string_view part) {
      split_pieces(
          part, longest_, [&](std::string_view piece) { return index_.contains(piece); },
          [&](std::string_view piece) { rows.push_back(index_.find(piece)); });
    });
    return rows;
  }

  WordIndex index_;
  std::size_t longest_ = 0;
  bool pieces_ = false;
};

}  // namespace

VectorTable read_vectors(ByteReader& reader, const std::string& tensor) {
  std::vector<std::uint8_t> bytes;
  append_bytes(reader, kLongestTable, bytes);
  expect_end(reader, "8 GiB");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  VectorTable table = is_safetensors(text) ? read_tensor(text, reader.name(), tensor)
                                           : read_glove(text, reader.name());
  if (table.vectors.rows < 1 || table.vectors.columns < 1 || table.vectors.columns > kMaxColumns)
    bad_input(reader.name(), "",
              "vectors of 1 to " + std::to_string(kMaxColumns) +
                  " numbers, in a .safetensors file or as lines of a word and its numbers",
              std::to_string(table.vectors.rows) + " of " + std::to_string(table.vectors.columns));
  table.digest = sha256_of(bytes);
  table.source = reader.name();
  return table;
}

void reduce(VectorTable& table, int dims) {
  WordVectors& v = table.vectors;
  if (dims == v.columns) return;
  if (dims > v.columns)
    bad_input("--embedding-dims", "",
              "at most the " + std::to_string(v.columns) + " columns of " + table.source,
              std::to_string(dims));
  const std::vector<double> means = column_means(v);
  const Eigenpairs leading = leading_eigenvectors(scatter_of(v, means), v.columns, dims);
  v.values = turned(v, means, leading.vectors, dims);
  v.columns = dims;
}

Clitic split_clitic(std::string_view word) {
  for (const std::string_view ending : {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"})
    if (word.size() > ending.size() && word.ends_with(ending))
      return {word.substr(0, word.size() - ending.size()), ending};
  return {};
}

std::shared_ptr<const WordVectors> vectors_of(const Vocabulary& vocabulary,
                                              const VectorTable& table) {
  const WordVectors& from = table.vectors;
  const auto d = static_cast<std::size_t>(from.columns);
  const std::vector<std::string>& words = vocabulary.words();
  if (table.words.empty() && static_cast<std::size_t>(from.rows) < words.size())
    bad_input(table.source, "", "a row for each of " + std::to_string(words.size()) + " words",
              std::to_string(from.rows) + " rows");
  const RowsOfWords rows_of(table);
  auto to = std::make_shared<WordVectors>();
  to->rows = vocabulary.rows();
  to->columns = from.columns;
  to->values.resize(static_cast<std::size_t>(to->rows) * d);
  float* out = to->values.data() + static_cast<std::size_t>(count_of(vocabulary.marks())) * d;
  for (std::size_t k = 0; k < words.size(); ++k, out += d) {
    const std::vector<int> rows =
        table.words.empty() ? std::vector<int>{static_cast<int>(k)} : rows_of(words[k]);
    for (const int row : rows)
      for (std::size_t i = 0; i < d; ++i)
        out[i] +=
            from.values[static_cast<std::size_t>(row) * d + i] / static_cast<float>(rows.size());
  }
  return to;
}

}  // namespace cudp
