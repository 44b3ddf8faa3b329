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
  /// The training rows (train) and the rows held out for testing (held). Both have a file with the
  /// features, and the arrays with one element per row (labels, targets, ...). Other members of the
  /// Dataset, such as the shape and the number of classes, follow from the schema and are not set.
  Dataset train;
  Dataset held;
  bool has_held = false;
  bool is_used = false;  ///< whether take_kept() has moved the rows out
};

/// Rows of a table that an interrupted run converted and kept, for use when the run is resumed. A
/// part of the training's config that exists in memory only and is not written to config files. The
/// member `table` is null if there are no such rows.
struct KeptTableInUse {
  std::shared_ptr<KeptTable> table;
};

/// Returns a text that identifies the state of a table from which rows were converted: path, size
/// and modification time of the table's file, and the schema. If the text is unchanged, rows
/// converted earlier are still valid. "" if the table is not a regular file.
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
/// whether it did. The rows can be used if they were made from the same table and schema
/// (kept.coding equals `coding`, which is not ""), and if they have the shape and kind of features
/// of `empty`, a data set without examples. There must be held-out rows if `holds_out` is true, and
/// none otherwise.
bool take_kept(KeptTable& kept, const std::string& coding, bool holds_out, const Dataset& empty,
               DataSplit& split);

}  // namespace cudp
