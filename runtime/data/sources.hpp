#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/data/load.hpp"

namespace cudp {

/// `folder`/`stem`, or that with .gz or .xz; an empty path if there is none.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem);

/// The first of the stems that `folder` has. Throws InputError if it has none.
std::filesystem::path require_file(const std::filesystem::path& folder,
                                   const std::vector<std::string>& stems);

/// The folder below request.dir that holds the named data set, told by one of the stems.
/// Throws InputError, naming the script that downloads it, if there is none.
std::filesystem::path named_folder(const DataRequest& request,
                                   const std::vector<std::string>& stems);

inline const std::vector<std::string> kIdxTrainImages = {"train-images-idx3-ubyte",
                                                         "train-images.idx3-ubyte"};

/// A folder of four IDX files. classes: 0 takes the largest label of the (public) test set and one.
DataSplit load_idx_folder(const std::filesystem::path& folder, int classes);

/// A folder of data_batch_1 to 5 and test_batch, or the first 1,000 of it.
DataSplit load_cifar_folder(const std::filesystem::path& folder);

/// The built-in sentences.
DataSplit load_sentences(const DataRequest& request);

/// adult, bank, ipums-br or imdb, with the shipped schema unless the request names another.
DataSplit load_named_table(const DataRequest& request);

/// A table file.
DataSplit load_table_file(const DataRequest& request);

/// Every row of a table file; see load_test_data.
TestData load_table_rows(const DataRequest& request);

}  // namespace cudp
