#pragma once
// Functions that read data sets, one for each kind of source.
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

/// Text for the certificate: an assumption on which the privacy guarantee rests if a user trains on
/// image files of their own.
inline constexpr const char* kLabelsAreClasses =
    "every label is a class: a training on a file with another is refused, and that is not counted";

/// Facts about a folder of images that are known before the folder is read: the published name, the
/// number of classes, and the part of the images that this process reads.
struct FolderFacts {
  /// Published name of the set; the files must then have the published content (published.hpp).
  /// Empty: the user's own files.
  std::string set{};
  /// Number of classes. A label that is not below it is an error. The number is never taken from
  /// the labels, which are private.
  int classes = 10;
  Share share{};
  /// Whether pixels of IDX files are kept in memory or in a file. Those of CIFAR are in memory.
  RowStorage storage{};
};

/// Reads a folder with the four IDX files of a data set such as MNIST.
DataSplit load_idx_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// Reads a folder with CIFAR-10's files data_batch_1 to 5 and test_batch. test_batch may have only
/// its first 1,000 images.
DataSplit load_cifar_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// Makes the built-in data set of images of digits.
DataSplit load_glyphs(const DataRequest& request);
/// Makes the built-in data set of sentences.
DataSplit load_sentences(const DataRequest& request);

/// Throws InputError if the request names a published data set that is a table, and also states a
/// schema or a test table: such a data set has its own schema and test rows.
void check_named_table(const DataRequest& request);

/// Reads the table of a published data set from this folder, with the schema that comes with the
/// program. Throws InputError if a file does not have the published content.
DataSplit load_named_table(const DataRequest& request, const NamedDataset& named,
                           const std::filesystem::path& folder);

/// Returns whether a row is a test row, for a table that was published without a test set. About a
/// fifth of the rows are test rows. The result is a function of the row's text alone, so no row
/// affects whether another one is a test row.
bool is_published_test_row(std::string_view text);

/// Returns whether `dataset` is the path of a table, or "-" for the standard input: i.e. neither
/// the name of a published data set, nor a folder, nor a .npy or .npz file.
bool is_table_path(const std::string& dataset);

/// Returns whether the path is that of an array of examples: it ends in .npy or .npz, perhaps
/// followed by .gz or .xz.
bool is_matrix(const std::filesystem::path& path);

/// Reads training and test examples, with their labels, from the .npy or .npz files that the
/// request names.
DataSplit load_matrix(const DataRequest& request);
/// Reads all rows of the .npy or .npz file request.dataset, to score them with a model.
TestData load_matrix_rows(const DataRequest& request);

/// Reads training and test examples from the table files (CSV etc.) that the request names by path.
DataSplit load_table_file(const DataRequest& request);

/// Reads all rows of a table file, to score them with a model. The file is request.test_path or, if
/// that is empty, request.dataset.
TestData load_table_rows(const DataRequest& request);

}  // namespace cudp
