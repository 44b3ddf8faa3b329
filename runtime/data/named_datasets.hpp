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
/// test examples are public. Its files must have the published content, which is checked by a
/// SHA-256 digest. If it is a table, its schema comes with the program.
struct NamedDataset {
  std::string name;
  /// Folder below --data-dir, also the name in scripts/fetch_data.sh; empty if the set is built in.
  std::string folder{};
  /// Names of files by which a folder with this data set is recognised: it has at least one of
  /// them.
  std::vector<std::string> marker_files{};
  /// Name of the file with the test rows of a table; if empty, test rows are taken from the
  /// training file.
  std::string test{};
  bool is_table = false;
  std::uint64_t rows = 0;  ///< number of training examples
  DataSplit (*load)(const DataRequest&, const NamedDataset&, const std::filesystem::path& folder);
};

/// Returns all data sets that users can give by name, in the order in which help texts list them.
std::span<const NamedDataset> named_datasets();
bool is_named_dataset(std::string_view name);
/// Returns the number of training examples of a named data set; 0 if no data set has this name.
std::uint64_t published_rows(std::string_view name);

/// Loads the data set with the name request.dataset. Throws InputError if a file is missing or does
/// not have the published content, Error if memory does not suffice.
DataSplit load_named(const DataRequest& request);

}  // namespace cudp
