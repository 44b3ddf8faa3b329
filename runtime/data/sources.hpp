#pragma once
// Functions that read data sets, by kind of file.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/request.hpp"

namespace cudp {

struct NamedDataset;

inline const std::vector<std::string> kIdxTrainImages = {"train-images-idx3-ubyte",
                                                         "train-images.idx3-ubyte"};

inline const std::string kCifarTrainImages = "data_batch_1.bin";

/// Assumption of the guarantee about a user's own images.
inline constexpr const char* kLabelsAreClasses =
    "every label is a class: a training on a file with another is refused, and that is not counted";

/// Facts about a folder of images that are known before it is read.
struct FolderFacts {
  /// Published name of the set; the files must then have the published content (published.hpp).
  /// Empty: the user's own files.
  std::string set{};
  /// Number of classes. A larger label is refused: the number of classes is never read from labels,
  /// which are private.
  int classes = 10;
  Share share{};
  RowStorage storage{};  ///< where pixels of IDX files are kept; those of CIFAR are in memory
};

/// Reads a folder of four IDX files.
DataSplit load_idx_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// Reads a folder of data_batch_1 to 5 and test_batch, or the first 1,000 images of the latter.
DataSplit load_cifar_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// Makes the built-in images, or sentences.
DataSplit load_glyphs(const DataRequest& request);
DataSplit load_sentences(const DataRequest& request);

/// Throws InputError if the request names a schema or a test table, because a named table has its
/// own.
void check_named_table(const DataRequest& request);

/// Reads a named table in this folder, with the shipped schema. Throws InputError if the content of
/// a file is not the published one.
DataSplit load_named_table(const DataRequest& request, const NamedDataset& named,
                           const std::filesystem::path& folder);

/// Returns whether a row of a table that was published without a test set is a test row here. A
/// fifth of the rows are. The row's own text decides, so no row changes the part that another is
/// in.
bool is_published_test_row(std::string_view text);

/// Returns whether `dataset` is a table given by its path, or the standard input: neither a name,
/// nor a folder, nor a matrix.
bool is_table_path(const std::string& dataset);

/// Returns whether the path names an array of examples: it ends in .npy or .npz, compressed or not.
bool is_matrix(const std::filesystem::path& path);

/// Reads arrays of examples, and their labels.
DataSplit load_matrix(const DataRequest& request);
/// Reads all rows of request.dataset, an array.
TestData load_matrix_rows(const DataRequest& request);

/// Reads a table file.
DataSplit load_table_file(const DataRequest& request);

/// Reads every row of a table file; see load_test_data.
TestData load_table_rows(const DataRequest& request);

}  // namespace cudp
