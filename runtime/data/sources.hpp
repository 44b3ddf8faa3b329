#pragma once
#include <filesystem>
#include <string>
#include <string_view>
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

/// Throws InputError where a file of test examples is one of training examples: the same path, or a
/// link to the same file. A copy is not looked for: a refusal that depends on rows would tell of
/// them.
void check_apart(const std::filesystem::path& test,
                 const std::vector<std::filesystem::path>& train);

inline const std::vector<std::string> kIdxTrainImages = {"train-images-idx3-ubyte",
                                                         "train-images.idx3-ubyte"};

/// What is known of a folder of images before they are read.
struct FolderFacts {
  /// The published name that its files are claimed to be of, whose content they must then have
  /// (published.hpp); empty: the user's own.
  std::string set{};
  /// A larger label is refused: how many there are is never read from labels, which are private.
  int classes = 10;
};

/// A folder of four IDX files.
DataSplit load_idx_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// A folder of data_batch_1 to 5 and test_batch, or the first 1,000 of it.
DataSplit load_cifar_folder(const std::filesystem::path& folder, const FolderFacts& facts);

/// The built-in sentences.
DataSplit load_sentences(const DataRequest& request);

/// adult, bank, ipums-br or imdb, with the shipped schema. Throws InputError where the request
/// names another, or where a file's content is not the published one.
DataSplit load_named_table(const DataRequest& request);

/// BANK and IPUMS-BR were published without a test set; a fifth of their rows is theirs here. Which
/// ones follows from each row's own text, so that no row changes the part that another is in.
bool is_published_test_row(std::string_view text);

/// A table file.
DataSplit load_table_file(const DataRequest& request);

/// Every row of a table file; see load_test_data.
TestData load_table_rows(const DataRequest& request);

}  // namespace cudp
