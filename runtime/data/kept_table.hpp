#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/data/dataset.hpp"

namespace cudp {

struct TableSchema;

/// Rows of a table as features (coded rows, row_layout.hpp), in files that a run keeps in its
/// private folder until it ends. A resumed run then need not convert the table again. These files
/// are not authenticated here: the caller must compare the code of the whole data set (data_tag)
/// before it trains on the rows.
struct KeptTable {
  std::string coding;  ///< result of coding_of() for these rows
  /// Training rows and held-out rows. They have all arrays of a Dataset, with the features in a
  /// file, but not the facts that the schema states, such as its shape.
  Dataset train;
  Dataset held;
  bool has_held = false;
  bool is_used = false;  ///< whether take_kept() has moved the rows out
};

/// Kept rows that a resumed training can use; stored in TrainConfig::of. A config read from a file
/// has none.
struct KeptTableInUse {
  std::shared_ptr<KeptTable> table;
};

/// Returns a text that changes if the coded rows of a table may have changed: path, size and time
/// of the last change of its file, and schema. "" if the table is not a regular file.
std::string coding_of(const std::filesystem::path& table, const TableSchema& schema);

/// Stores the training rows, and the held-out rows, as files in `folder`, which must be on the disk
/// of the file that has their features. Replaces rows that were kept before. Does nothing if the
/// features are in memory or in the user's own file, or if the file system cannot do it. Throws
/// Error if the disk is full.
void keep_table(const DataSplit& data, const std::filesystem::path& folder);

/// Returns the rows kept in `folder`; null if there are none or if their files are damaged.
std::shared_ptr<KeptTable> kept_table(const std::filesystem::path& folder);

/// Removes the rows kept in `folder`, if there are any.
void remove_kept_table(const std::filesystem::path& folder);

/// Moves kept rows to split.train and split.test (held-out rows), if their coding is `coding` and
/// they have the format of `empty`, a data set without examples. Returns whether they were moved.
bool take_kept(KeptTable& kept, const std::string& coding, bool holds_out, const Dataset& empty,
               DataSplit& split);

}  // namespace cudp
