#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/data/dataset.hpp"

namespace cudp {

struct TableSchema;

/// Rows of a table that a run has converted to features, in files that it keeps in its private
/// folder until it ends. A resumed run then need not convert the table again. These files are not
/// authenticated here: the caller must check the authentication code of the whole data set before
/// it trains on the rows.
struct KeptTable {
  std::string coding;  ///< result of coding_of() for these rows
  /// The training rows (train) and the rows held out for testing (held). Both have arrays with the
  /// rows, and a file with their features. Other members of the Dataset, such as the shape and the
  /// number of classes, follow from the schema and are not set.
  Dataset train;
  Dataset held;
  bool has_held = false;
  bool is_used = false;  ///< whether take_kept() has moved the rows out
};

/// Converted rows of a table that an interrupted run has kept, for use when it is resumed. A part
/// of the training's config in memory, never of a config file. The member `table` is null if there
/// are no such rows.
struct KeptTableInUse {
  std::shared_ptr<KeptTable> table;
};

/// Returns a text that changes if the table's rows, converted to features, may have changed. It has
/// the path of the table's file, the file's size and time of last change, and the schema. "" if the
/// table is not a regular file.
std::string coding_of(const std::filesystem::path& table, const TableSchema& schema);

/// Stores the training rows and the held-out rows of a table, converted to features, as files in
/// `folder`, which must be on the same disk as the file with the features. Replaces rows that an
/// earlier call stored. Does nothing if the features are in memory or in the user's own file, or if
/// the file system cannot do it. Throws Error if the disk is full.
void keep_table(const DataSplit& data, const std::filesystem::path& folder);

/// Returns the rows that keep_table() stored in `folder`; null if there are none or if their files
/// are damaged.
std::shared_ptr<KeptTable> kept_table(const std::filesystem::path& folder);

/// Removes the files that keep_table() stored in `folder`, if there are any.
void remove_kept_table(const std::filesystem::path& folder);

/// Moves table rows that an earlier process of the run converted and stored into split.train
/// (training rows) and split.test (held-out rows), if they can be used in the resumed run. Returns
/// whether it did. The rows are usable if they were made from the same table and schema
/// (kept.coding equals `coding`), if they have the shape and kind of features of `empty`, a data
/// set without examples, and if there are held-out rows exactly if `holds_out` is true.
bool take_kept(KeptTable& kept, const std::string& coding, bool holds_out, const Dataset& empty,
               DataSplit& split);

}  // namespace cudp
