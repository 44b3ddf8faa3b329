#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/request.hpp"

namespace cudp {

/// A data set that users give by name (mnist, adult, ...). Its number of training examples and its
/// test examples are public. Its files must have the published content (published.cpp). A table has
/// the schema schemas/NAME.toml.
struct NamedDataset {
  std::string name;
  /// Folder below --data-dir, also the name in scripts/fetch_data.sh; empty if the set is built in.
  std::string folder{};
  /// Names of files that show that a folder holds this data set.
  std::vector<std::string> marker_files{};
  /// File of a table's test rows; empty: they are taken from the training file.
  std::string test{};
  bool is_table = false;
  std::uint64_t rows = 0;  ///< number of training examples; 0 if it is found by reading them
  DataSplit (*load)(const DataRequest&, const NamedDataset&, const std::filesystem::path& folder);
};

/// Returns all named data sets, in the order of help texts.
std::span<const NamedDataset> named_datasets();
bool is_named_dataset(std::string_view name);
/// Returns the number of training examples of a named data set, if it is known before its files are
/// read; otherwise 0.
std::uint64_t published_rows(std::string_view name);

/// Loads the data set with the name request.dataset. Throws InputError or Error like load_data().
DataSplit load_named(const DataRequest& request);

}  // namespace cudp
