#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/layer.hpp"
#include "runtime/data/row_layout.hpp"

namespace cudp {

/// The vectors of the words of a public list, one row each.
struct WordVectors {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Examples in memory. Images stay bytes; an engine converts when it reads them:
/// feature = scale * byte + shift. Rows of tables are kept coded; matrices of features hold
/// float32. Feature order is channel by channel, row by row, as in the models' Shape. Texts are
/// words' numbers: shape {1, 1, T}, T the most words of a text.
struct Dataset {
  Shape shape;
  int classes = 0;                          ///< 1: examples have targets
  std::vector<std::uint8_t> bytes;          ///< [size, shape.size()], or empty
  bool holds_bytes = false;                 ///< features are bytes, also where there is no example
  std::vector<float> floats;                ///< [size, shape.size()], or empty
  std::vector<std::uint8_t> coded;          ///< [size, layout->row_bytes()], or empty
  std::shared_ptr<const RowLayout> layout;  ///< of coded rows, where they are; null: not coded
  std::vector<std::uint16_t> tokens;  ///< [size, T], each < words, or empty; 0 from a text's end on
  std::vector<std::uint16_t> lengths;          ///< [size] of texts: words of each, 0 to T
  int words = 0;                               ///< of texts: rows of their embedding
  std::shared_ptr<const WordVectors> vectors;  ///< of texts, [words, columns], where given; public
  std::vector<std::uint8_t> labels;            ///< [size], each < classes <= 256
  /// [size] where examples have targets, all labels then being 0; else empty. Each is in -1..1,
  /// what the schema's public bounds make of the number (target.hpp).
  std::vector<float> targets;
  float scale = 1.0f / 255.0f;  ///< bytes only; public constants, never read from the data
  float shift = 0.0f;

  /// Of training examples of which some were held out: the number that each has among the used rows
  /// of its file, ascending [n], by which batches are drawn. Empty: each one's place here.
  std::vector<std::uint32_t> numbers;
  /// Where a unit of privacy has several rows: the number that the first used row of each example's
  /// unit has [n]. Empty: each is a unit.
  std::vector<std::uint32_t> first_rows;

  /// Where this is a range of a larger set (range.hpp): the place of its first example there, and
  /// how many examples that has; 0 where this is the whole.
  std::size_t first = 0;
  std::size_t whole = 0;

  std::size_t size() const { return labels.size(); }
  std::size_t whole_size() const { return whole > 0 ? whole : size(); }
  bool is_bytes() const { return holds_bytes || !bytes.empty(); }
  bool is_text() const { return words > 0; }
  bool is_coded() const { return layout != nullptr; }
  bool has_targets() const { return classes == 1; }
  /// The coded rows, as kernels see them; valid while the data set is not changed.
  CodedRows coded_rows() const { return layout->view(coded.data()); }
};

struct TextCoder;
struct TableSchema;

/// A training set, whose examples privacy protects, and a test set.
struct DataSplit {
  std::string name;
  Dataset train;
  Dataset test;  ///< of the same shape and classes; empty where none was given
  /// True where test rows were given, of which there may be none: their number may be private.
  bool test_given = false;
  /// The coder that made numbers of texts, for whoever uses the model; null where there are none.
  std::shared_ptr<const TextCoder> text;
  /// The complete schema of a table; null of other data.
  std::shared_ptr<const TableSchema> schema;
  /// True where the test rows are held-out ones (holdout.hpp).
  bool held_out = false;
  /// True where the test rows are published: those of a built-in data set, or that the user
  /// declares public. Otherwise nothing that is measured on them may leave the private folder.
  bool test_is_public = false;
  /// True where the number of training examples is public knowledge: built-in and published data
  /// sets, or a size the user declares public. Otherwise only a noisy, accounted size may be used.
  bool size_is_public = false;
  /// How many training examples a unit of privacy has at most: by so many neighbours differ. 1
  /// where each example is a unit, or where a table's schema says so.
  std::uint64_t unit_rows = 1;
  /// Notes that a report must show beside an accuracy, e.g. which rows the test set is. They are
  /// public.
  std::vector<std::string> notes;
  /// Departures from privacy that the user accepted and the certificate must show, e.g. bounds read
  /// from private data.
  std::vector<std::string> unsafe;
  /// What the guarantee takes for granted of the files, in words, for the certificate.
  std::vector<std::string> assumptions;
};

/// Examples to score a model on.
struct TestData {
  std::string name;
  Dataset examples;
};

}  // namespace cudp
