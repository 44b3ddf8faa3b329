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

/// Source of an array of examples and their labels (files, or arrays in memory), and options for
/// reading them.
struct MatrixFiles {
  std::filesystem::path features;  ///< .npz with the examples and their labels, or .npy
  std::filesystem::path labels{};  ///< .npy with the labels of a .npy file of examples
  /// Arrays in memory to read instead of the files; must outlive the reader. Null: read the files.
  const LabelledArrays* given = nullptr;
  bool read_labels = true;  ///< false: labels are 0, and the file may lack them
  int classes = 0;          ///< number of classes, the labels 0, 1, ...; 1 if `target` is set
  /// Treatment of NaN or infinity in a row, and of a label outside the classes. `refuse`: an error.
  /// `missing`: they count as missing values and are replaced: the whole row by zeros, the label by
  /// class 0, and a target that is not finite by the lower bound (+infinity by the upper bound).
  Malformed malformed = Malformed::refuse;
  ArrayForm form{};
  ArrayNames names{};  ///< names of the arrays in a .npz file
  /// Bounds of the regression target, if the labels are targets. Numbers beyond a bound count as
  /// the bound.
  std::optional<TargetBounds> target{};
  RowStorage storage{};         ///< whether features are kept in memory or in a file
  std::size_t max_rows = 4096;  ///< maximum number of rows in a block; fewer if rows are wide
  Busy* progress = nullptr;  ///< receives the fraction of the rows that has been read; may be null

  /// Returns the name of the array of features, for messages.
  std::string name() const { return given != nullptr ? given->x.name : features.string(); }
};

/// Reads n examples (floating-point numbers, or images of bytes) and n labels in blocks of rows, in
/// order. Memory use does not grow with n.
class MatrixReader {
 public:
  /// Opens the files. Throws InputError if a file or an array in it is missing, or if an array has
  /// another type or size than `files` requires.
  explicit MatrixReader(const MatrixFiles& files);
  ~MatrixReader();
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;
  MatrixReader(MatrixReader&&) = delete;
  MatrixReader& operator=(MatrixReader&&) = delete;

  /// Returns a data set without examples, to which blocks can be appended: it has the shape and the
  /// kind of features (bytes or floats) of the array's examples.
  Dataset empty() const;
  std::uint64_t rows() const;
  /// Returns the number of rows for which a caller may allocate memory before it reads them. It
  /// follows from the actual size of the file, not from the file's header, which may be wrong.
  std::uint64_t reservable() const;
  /// Reads the next block of rows; leaves its members `ids` and `groups` empty. Returns false after
  /// the last block. Throws InputError if rows have errors; the message lists up to
  /// TableFaults::kMax of them.
  bool next(TableBlock& block);
  /// Returns a view of the features in the calling program's memory, for use without a copy; null
  /// if they must be converted. They can be used as they are if the array is in memory, row-major
  /// and of type float32 (or bytes, for images), and if a row with NaN is an error rather than
  /// replaced by zeros. The caller must still read all blocks, because next() checks the rows.
  std::shared_ptr<const BorrowedFeatures> borrowed() const;
  /// Returns the features as a memory-mapped file, for use without a copy; null if they must be
  /// converted. They can be used as they are if the array is in an uncompressed file and of type
  /// float32 (or bytes, for images), and if a row with NaN is an error rather than replaced by
  /// zeros. The caller must still read all blocks, because next() checks the rows.
  std::shared_ptr<const RowFile> file_rows() const;

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

}  // namespace cudp
