#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/malformed.hpp"
#include "runtime/data/array_layout.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/given_arrays.hpp"
#include "runtime/data/table_reader.hpp"

namespace cudp {

class Busy;

/// Files of an array of examples, and how they are read.
struct MatrixFiles {
  std::filesystem::path features;  ///< .npz with the examples and their labels, or .npy
  std::filesystem::path labels{};  ///< .npy with the labels of a .npy file of examples
  /// Arrays that are read in place of the files; must outlive the reader. Null: the files are.
  const LabelledArrays* given = nullptr;
  bool read_labels = true;  ///< false: labels are 0, and the file may lack them
  int classes = 0;  ///< number of classes, and labels are 0 to classes - 1; 1: `target` is set
  /// Treatment of a row with a NaN or an infinity, and of a label outside the classes: they are
  /// refused, or the row counts as zeros and the label as class 0. A target that is not finite is
  /// refused, or counts as the lower bound (an infinity as the bound of its sign).
  Malformed malformed = Malformed::refuse;
  ArrayForm form{};
  ArrayNames names{};  ///< names of the arrays in a .npz file
  /// Bounds of the number to predict, which the labels then are. Numbers beyond them count as the
  /// bound.
  std::optional<TargetBounds> target{};
  RowStorage storage{};         ///< where the features of a data set of all rows are kept
  std::size_t max_rows = 4096;  ///< maximum of a block; fewer if rows are wide
  Busy* progress = nullptr;     ///< told the share of the rows that has been read; null: none

  /// Returns the name of the features in messages.
  std::string name() const { return given != nullptr ? given->x.name : features.string(); }
};

/// Reads an array of n examples, floating-point numbers or images of bytes, and n labels in blocks,
/// in the order of the rows. Memory use does not grow with n.
class MatrixReader {
 public:
  /// Throws InputError if a file is not as MatrixFiles states.
  explicit MatrixReader(const MatrixFiles& files);
  ~MatrixReader();
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;
  MatrixReader(MatrixReader&&) = delete;
  MatrixReader& operator=(MatrixReader&&) = delete;

  /// Returns an empty data set of the array's shape and kind of numbers.
  Dataset empty() const;
  std::uint64_t rows() const;
  /// Number of rows for which memory may be reserved, whatever the header claims.
  std::uint64_t reservable() const;
  /// Reads the next block, without ids or groups; returns false after the last. Throws InputError
  /// with up to TableFaults::kMax faults of rows.
  bool next(TableBlock& block);
  /// Returns the features as they lie in memory, if a data set can use them so: an array of
  /// float32, or bytes of images, row by row, of which no row may be replaced. Null if it cannot.
  /// All blocks must still be read, because that checks them.
  std::shared_ptr<const LentFeatures> lent() const;
  /// Returns the features as they lie in the file, if a data set can use them so: an array of
  /// float32, or bytes of images, not compressed, of which no row may be replaced. Null if it
  /// cannot. All blocks must still be read, because that checks them.
  std::shared_ptr<const RowFile> file_rows() const;

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

}  // namespace cudp
