#pragma once
#include <memory>
#include <optional>
#include <string>

#include "runtime/config/malformed.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/share.hpp"
#include "runtime/data/text_options.hpp"

namespace cudp {

class Busy;
struct GivenArrays;
struct TextCoder;

/// Request for a data set: which one, and how it is read.
struct DataRequest {
  /// Name in named_datasets(), or a path: a folder of IDX or CIFAR files, a .csv/.tsv file (plain,
  /// .gz or .xz), or a .npy or .npz file of examples.
  std::string dataset{};
  /// Folder with the files of named data sets, in DIR/NAME/ or in DIR/ itself; empty: data/.
  std::string dir{};
  /// Schema of a table given by path: a file, or the name of a shipped schema; empty:
  /// PATH.schema.toml if it exists. A named table has the shipped schema of its name.
  std::string schema{};
  /// Path of a .npy file with the labels of a .npy file of examples.
  std::string labels_path{};
  /// Path of the test table of a table given by path, or of the test features; empty: no test set.
  std::string test_path{};
  std::string test_labels_path{};
  ArrayOptions arrays{};  ///< how .npy and .npz files are read
  /// Examples that are taken in place of the files `dataset` and `test_path`, which then are the
  /// arrays' names; null: the files are read.
  std::shared_ptr<const GivenArrays> given{};
  bool test_is_public = false;         ///< the user declares the test rows public
  bool accept_private_bounds = false;  ///< read what a schema leaves open from private rows
  /// Treatment of cells of a table that cannot be read.
  Malformed malformed = Malformed::refuse;
  bool size_is_public = false;  ///< the user declares the number of training rows public
  int classes = 0;     ///< number of classes, 2 to 256, if labels are numbers; 0: ten, in a folder
  TextOptions text{};  ///< how texts are read
  /// Where the features of training and test examples are kept.
  RowStorage storage{};
  /// Share of the training and test examples that is read; recorded in Dataset::first if it is not
  /// everything.
  Share share{};
  /// Coins for the held-out rows, which become the test rows of a table or matrix that has none.
  /// Other data ignores them.
  std::optional<HoldOutCoins> holdout{};
  /// Coder of a trained model, used instead of `text`.
  std::shared_ptr<const TextCoder> coder{};
  /// Hears how much of a table or a matrix has been read, which is for a terminal alone; null: none
  /// does.
  Busy* progress = nullptr;
};

}  // namespace cudp
