#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/malformed.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/table_reader.hpp"

namespace cudp {

class Busy;

/// The files of a matrix of features, and how they are read.
struct MatrixFiles {
  std::filesystem::path features;  ///< .npz with members x and y, or .npy
  std::filesystem::path labels{};  ///< .npy, of a .npy file of features
  bool read_labels = true;         ///< false: labels are 0, and may be absent
  int classes = 0;                 ///< of the labels, which are 0 to classes - 1
  /// The fate of a row with a NaN or an infinity, and of a label that is no class: they are
  /// refused, or the row is taken for zeros and the label for class 0.
  Malformed malformed = Malformed::refuse;
  std::size_t max_rows = 4096;  ///< of a block; fewer where rows are wide
  Busy* progress = nullptr;     ///< hears which share of the rows has been read; null: none does
};

/// Reads a matrix [n, D] of floating-point numbers and n labels in blocks, in the order of its
/// rows; memory does not grow with their number.
class MatrixReader {
 public:
  /// Throws InputError where a file is not what it must be.
  explicit MatrixReader(const MatrixFiles& files);
  ~MatrixReader();
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;
  MatrixReader(MatrixReader&&) = delete;
  MatrixReader& operator=(MatrixReader&&) = delete;

  /// An empty data set of the right shape.
  Dataset empty() const;
  std::uint64_t rows() const;
  /// Rows that may be reserved, whatever the header claims.
  std::uint64_t reservable() const;
  /// The next block, without ids or groups; false behind the last. Throws InputError: up to
  /// TableFaults::kMax faults of rows at once.
  bool next(TableBlock& block);

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

}  // namespace cudp
