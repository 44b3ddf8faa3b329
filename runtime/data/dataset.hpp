#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/layer.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/row_layout.hpp"

namespace cudp {

/// Vectors of the words of a public list, one row each.
struct WordVectors {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Features of examples in memory that belongs to a program that uses cudp, such as a NumPy array.
/// One of the two has [size, shape.size()] elements. They are never changed.
struct LentFeatures {
  std::span<const std::uint8_t> bytes;
  std::span<const float> floats;
  std::shared_ptr<const void> owner;  ///< keeps the memory
};

/// Examples in memory. Images stay bytes, which an engine converts when it reads them: feature =
/// scale * byte + shift. Rows of tables are kept coded. Matrices of features hold float32. Features
/// are in the order channel, row, column, as in the models' Shape. Texts are numbers of words, with
/// shape {1, 1, T}, where T is the maximum number of words of a text.
struct Dataset {
  Shape shape;
  int classes = 0;                  ///< 1: examples have targets
  std::vector<std::uint8_t> bytes;  ///< [size, shape.size()], or empty
  bool holds_bytes = false;         ///< features are bytes; set even without examples
  std::vector<float> floats;        ///< [size, shape.size()], or empty
  /// Features in the caller's memory, used in place of `bytes` or `floats`; null: none are.
  std::shared_ptr<const LentFeatures> lent;
  /// Features in a file, [size] records of one of the arrays `bytes`, `floats`, `coded` and
  /// `tokens`, which are then empty; null: they are in memory. Copy them with FetchedExamples.
  std::shared_ptr<const RowFile> rows;
  std::vector<std::uint8_t> coded;          ///< [size, layout->row_bytes()], or empty
  std::shared_ptr<const RowLayout> layout;  ///< layout of coded rows; null: examples are not coded
  std::vector<std::uint16_t> tokens;   ///< [size, T], each < words, or empty; 0 after the end of a
                                       ///< text
  std::vector<std::uint16_t> lengths;  ///< [size] for texts: number of words, 0 to T
  int words = 0;                       ///< number of rows of the embedding of texts; else 0
  std::shared_ptr<const WordVectors> vectors;  ///< given vectors of texts [words, columns];
                                               ///< public
  std::vector<std::uint8_t> labels;            ///< [size], each < classes <= 256
  /// Targets, [size] if examples have them (all labels are then 0), else empty. Each is in -1..1:
  /// the number scaled by the schema's public bounds (target.hpp).
  std::vector<float> targets;
  float scale = 1.0f / 255.0f;  ///< used for bytes; public constants, never read from data
  float shift = 0.0f;

  /// Number of each example among the used rows of its file, ascending, [n], by which batches are
  /// drawn. Set for training examples if some rows were held out. If empty, the number is the index
  /// here.
  std::vector<std::uint32_t> numbers;
  /// Number of the first used row of each example's unit of privacy, [n], if a unit has several
  /// rows. If empty, each example is a unit.
  std::vector<std::uint32_t> first_rows;

  /// Index of the first example, and number of examples, in the larger set of which this is a range
  /// (range.hpp). Both are 0 if this is the whole set.
  std::size_t first = 0;
  std::size_t whole = 0;

  std::size_t size() const { return labels.size(); }
  std::size_t whole_size() const { return whole > 0 ? whole : size(); }
  /// Returns the features, wherever they are.
  std::span<const std::uint8_t> byte_values() const { return lent ? lent->bytes : bytes; }
  std::span<const float> float_values() const { return lent ? lent->floats : floats; }
  bool is_bytes() const { return holds_bytes || !bytes.empty(); }
  bool is_text() const { return words > 0; }
  bool is_coded() const { return layout != nullptr; }
  bool has_targets() const { return classes == 1; }
  /// Returns the coded rows for kernels. Valid as long as the data set is not changed.
  CodedRows coded_rows() const { return layout->view(coded.data()); }
};

struct TextCoder;
struct TableSchema;

/// A training set, whose examples are private, and a test set.
struct DataSplit {
  std::string name;
  Dataset train;
  Dataset test;  ///< has the same shape and classes; empty if none was given
  /// True if test rows were given. There may be none of them: their number may be private.
  bool test_given = false;
  /// Coder that converted texts to numbers of words; a user of the model needs it. Null without
  /// texts.
  std::shared_ptr<const TextCoder> text;
  /// Complete schema of a table; null for other data.
  std::shared_ptr<const TableSchema> schema;
  /// True if the test rows were held out from the training table (holdout.hpp).
  bool held_out = false;
  /// True if the test rows are public: those of a built-in data set, or rows that the user declares
  /// public. Otherwise no figure measured on them may leave the private folder.
  bool test_is_public = false;
  /// True if the number of training examples is public: for built-in and published data sets, or if
  /// the user declares it public. Otherwise only a noisy, accounted size may be used.
  bool size_is_public = false;
  /// Maximum number of training examples per unit of privacy; neighbouring data sets differ by up
  /// to this many. 1 if each example is a unit, or if the table's schema states 1.
  std::uint64_t unit_rows = 1;
  /// Notes that a report must show next to an accuracy, e.g. which rows the test set is. Public.
  std::vector<std::string> notes;
  /// Departures from privacy that the user accepted and the certificate must show, e.g. bounds read
  /// from private data.
  std::vector<std::string> unsafe;
  /// Assumptions of the guarantee about the files, in words, for the certificate.
  std::vector<std::string> assumptions;
};

/// Examples on which a model is scored.
struct TestData {
  std::string name;
  Dataset examples;
};

}  // namespace cudp
