#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/layer.hpp"
#include "runtime/data/row_array.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/row_layout.hpp"

namespace cudp {

/// Embedding vectors of the words of a public list, one row per word.
struct WordVectors {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Features of examples in the calling program's memory, e.g. a NumPy array. Exactly one of the two
/// spans is set, with the features of all examples one after another. The program never writes to
/// this memory.
struct BorrowedFeatures {
  std::span<const std::uint8_t> bytes;
  std::span<const float> floats;
  std::shared_ptr<const void> owner;  ///< keeps the memory alive
};

/// Labelled examples. Their features have one of four forms: bytes (images; an engine converts
/// them: feature = scale * byte + shift), coded rows of a table (a compact form of sparse rows,
/// row_layout.hpp), floats (rows of a matrix), or word ids of a text, with shape {1, 1, T}, where T
/// is the maximum number of words. Features of an image are in the order channel, row, column.
struct Dataset {
  Shape shape;
  int classes = 0;                  ///< number of classes; 1: examples have targets
  std::vector<std::uint8_t> bytes;  ///< [size, shape.size()], or empty
  bool holds_bytes = false;         ///< features are bytes; set even without examples
  std::vector<float> floats;        ///< [size, shape.size()], or empty
  /// Features in the calling program's memory, used instead of the arrays `bytes` or `floats`. Null
  /// if this data set's own arrays, or a file, have the features.
  std::shared_ptr<const BorrowedFeatures> borrowed;
  /// File with the features, one record per example, used instead of the array `bytes`, `floats`,
  /// `coded` or `tokens`, which is then empty. FetchedExamples copies records into memory. Null if
  /// the features are in memory. If it is not null, the arrays `targets`, `numbers` and
  /// `first_rows` are in files, too.
  std::shared_ptr<const RowFile> rows;
  std::vector<std::uint8_t> coded;          ///< [size, layout->row_bytes()], or empty
  std::shared_ptr<const RowLayout> layout;  ///< layout of coded rows; null: examples are not coded
  /// Word ids of texts, [size, T], where T is the maximum number of words; each id is less than the
  /// number `words`, and 0 after the last word of a text. Empty if examples are not texts.
  std::vector<std::uint16_t> tokens;
  std::vector<std::uint16_t> lengths;  ///< [size] for texts: number of words, 0 to T
  /// Number of rows of the embedding, i.e. of different word ids, if examples are texts; else 0.
  int words = 0;
  /// Public embedding vectors of the words of texts, [words, columns]; null if there are none.
  std::shared_ptr<const WordVectors> vectors;
  std::vector<std::uint8_t> labels;  ///< [size], each < classes <= 256
  /// Regression targets, [size] (all labels are then 0); empty for classes. Each is in [-1, 1]: the
  /// number scaled by the public bounds in the schema (target.hpp).
  RowArray<float> targets;
  float scale = 1.0f / 255.0f;  ///< used for bytes; public constants, never read from data
  float shift = 0.0f;

  /// Sampling index of each example, [size], ascending: the index with which the sampler of batches
  /// draws it. It is the example's index among all rows of the file that are used, including rows
  /// held out for testing. Empty if no rows were held out; the sampler then uses the example's
  /// index in this data set.
  RowArray<std::uint32_t> numbers;
  /// Unit of privacy (e.g. person) of each example, [size]: the index, among all used rows of the
  /// file, of the unit's first row. Empty: each example is a unit of its own.
  RowArray<std::uint32_t> first_rows;

  /// Index of the first example in the whole data set, if this object is one rank's range of it
  /// (range.hpp), and the size of the whole data set. Both are 0 if this object is the whole data
  /// set.
  std::size_t first = 0;
  std::size_t whole = 0;

  std::size_t size() const { return labels.size(); }
  std::size_t whole_size() const { return whole > 0 ? whole : size(); }
  /// Returns the features that are bytes, whether this object or the calling program owns them;
  /// empty if features are not bytes in memory.
  std::span<const std::uint8_t> byte_values() const { return borrowed ? borrowed->bytes : bytes; }
  std::span<const float> float_values() const { return borrowed ? borrowed->floats : floats; }
  bool is_bytes() const { return holds_bytes || !bytes.empty(); }
  bool is_text() const { return words > 0; }
  bool is_coded() const { return layout != nullptr; }
  bool has_targets() const { return classes == 1; }
  /// Returns a view of the table rows (`coded`) for the kernels that compute with them. It is valid
  /// until the data set changes.
  CodedRows coded_rows() const { return layout->view(coded.data()); }
};

struct TextCoder;
struct TableSchema;

/// A training set, whose examples are private, and a test set. The other members state what is
/// known about both sets: whether they are public, the table's schema, and notes for the report.
struct DataSplit {
  std::string name;
  Dataset train;
  Dataset test;  ///< has the same shape and classes; empty if none was given
  /// Whether the user gave test rows. Code must not conclude this from the size of `test`, which
  /// may be 0 and may be private.
  bool test_given = false;
  /// Tokenizer, vocabulary and embedding with which texts were converted to word ids. Null: the
  /// data has no texts.
  std::shared_ptr<const TextCoder> text;
  /// Schema of the table, completed if the table's author left parts out; null if the data are not
  /// a table.
  std::shared_ptr<const TableSchema> schema;
  /// Text that changes if the table's file or its schema changes (coding_of()). A resumed run
  /// compares it with the text of the run's earlier process, and uses the rows that the earlier
  /// process converted only if the texts are equal. "" if rows of an earlier process are never
  /// used: if the data are not a table, if the table is a published one, or if `train` is only one
  /// rank's part of the table.
  std::string coding;
  /// True if the test rows were drawn at random from the training data and held out (holdout.hpp);
  /// false if they were given separately.
  bool held_out = false;
  /// Whether the test rows are public: rows of a built-in data set, or rows that the user declares
  /// public. If false, exact metrics measured on the test rows must stay in the run's private
  /// folder.
  bool test_is_public = false;
  /// Whether the number of training examples is public: true for built-in and published data sets,
  /// and if the user declares the number public. If false, the program may use only a noisy
  /// estimate of the number, which costs privacy.
  bool size_is_public = false;
  /// Maximum number of training examples of one unit of privacy (e.g. of one person). Neighbouring
  /// data sets differ by up to this number of examples. 1 if each example is a unit of its own.
  std::uint64_t unit_rows = 1;
  /// Public notes that a report must show next to an accuracy, e.g. from which rows the test set
  /// was made.
  std::vector<std::string> notes;
  /// Violations of the privacy guarantee that the user accepted, e.g. that bounds were read from
  /// private data. The certificate must list them.
  std::vector<std::string> unsafe;
  /// Assumptions about the data files on which the guarantee rests, as text for the certificate.
  std::vector<std::string> assumptions;
};

/// Examples to score with a trained model, as load_test_data() returns them.
struct TestData {
  std::string name;
  Dataset examples;
};

}  // namespace cudp
