#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/malformed.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/given_arrays.hpp"
#include "runtime/data/table_reader.hpp"

namespace cudp {

class Busy;

/// Files of a matrix of features or of images, and how they are read.
struct MatrixFiles {
  std::filesystem::path features;  ///< .npz with members x and y, or .npy
  std::filesystem::path labels{};  ///< .npy with the labels of a .npy file of features
  /// Arrays that are read in place of the files; must outlive the reader. Null: the files are.
  const LabelledArrays* arrays = nullptr;
  bool read_labels = true;  ///< false: labels are 0, and the file may lack them
  int classes = 0;          ///< number of classes; labels are 0 to classes - 1
  /// Treatment of a row with a NaN or an infinity, and of a label outside the classes: they are
  /// refused, or the row counts as zeros and the label as class 0.
  Malformed malformed = Malformed::refuse;
  std::size_t max_rows = 4096;  ///< maximum of a block; fewer if rows are wide
  Busy* progress = nullptr;     ///< told the share of the rows that has been read; null: none

  /// Returns the name of the features in messages.
  std::string name() const { return arrays != nullptr ? arrays->x.name : features.string(); }
};

/// Reads n rows and n labels in blocks, in the order of the rows: a matrix [n, D] of floating-point
/// numbers, or images [n, height, width] or [n, channels, height, width] of bytes or floating-point
/// numbers. Memory use does not grow with n.
class MatrixReader {
 public:
  /// Throws InputError if a file is not as MatrixFiles states.
  explicit MatrixReader(const MatrixFiles& files);
  ~MatrixReader();
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;
  MatrixReader(MatrixReader&&) = delete;
  MatrixReader& operator=(MatrixReader&&) = delete;

  /// Returns an empty data set of the matrix's shape.
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

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

}  // namespace cudp
