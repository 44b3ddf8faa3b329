#pragma once
// Functions that read data sets, by the kind of their files.
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

/// Facts about a folder of images, known before they are read.
struct FolderFacts {
  /// The published name that its files are claimed to be of, whose content they must then have
  /// (published.hpp); empty: the user's own.
  std::string set{};
  /// A larger label is refused: how many there are is never read from labels, which are private.
  int classes = 10;
  Share share{};
};

/// A folder of four IDX files.
DataSplit load_idx_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// A folder of data_batch_1 to 5 and test_batch, or the first 1,000 of it.
DataSplit load_cifar_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// The built-in images, and sentences.
DataSplit load_glyphs(const DataRequest& request);
DataSplit load_sentences(const DataRequest& request);

/// Throws InputError where the request names a schema or a table of test rows, which a named table
/// has of its own.
void check_named_table(const DataRequest& request);

/// The named table in this folder, with the shipped schema. Throws InputError where a file's
/// content is not the published one.
DataSplit load_named_table(const DataRequest& request, const NamedDataset& named,
                           const std::filesystem::path& folder);

/// A table that was published without a test set has a fifth of its rows as one here. Which ones
/// follows from each row's own text, so that no row changes the part that another is in.
bool is_published_test_row(std::string_view text);

/// Whether this is a table given by its path, or the standard input: neither a name, nor a folder
/// or a matrix.
bool is_table_path(const std::string& dataset);

/// Whether the path names a matrix of features: it ends in .npy or .npz, packed or not.
bool is_matrix(const std::filesystem::path& path);

/// Matrices of features, and their labels.
DataSplit load_matrix(const DataRequest& request);
/// All rows of request.dataset, a matrix.
TestData load_matrix_rows(const DataRequest& request);

/// A table file.
DataSplit load_table_file(const DataRequest& request);

/// Every row of a table file; see load_test_data.
TestData load_table_rows(const DataRequest& request);

}  // namespace cudp
