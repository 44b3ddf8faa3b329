#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/request.hpp"

namespace cudp {

/// A data set that is known by a name: one row of the table in named_datasets.cpp. How many
/// training examples it has is public, and so are its test examples. Its files must be the
/// published ones (published.cpp); a table's schema is schemas/NAME.toml.
struct NamedDataset {
  std::string name;
  /// Below --data-dir, and what scripts/fetch_data.sh calls it; empty: the set is built in.
  std::string folder{};
  std::vector<std::string> known_by{};  ///< files, by one of which the folder is known
  std::string test{};  ///< of a table: the file of its test rows; empty: a part of the others is it
  bool is_table = false;
  DataSplit (*load)(const DataRequest&, const NamedDataset&, const std::filesystem::path& folder);
};

/// Every one, in the order of help texts.
std::span<const NamedDataset> named_datasets();
bool is_named_dataset(std::string_view name);

/// The named data set request.dataset. Throws what load_data throws.
DataSplit load_named(const DataRequest& request);

}  // namespace cudp
