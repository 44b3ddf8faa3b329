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
struct KeptTable;
struct TextCoder;

/// A request to read a data set: its name or path, and the options for reading it.
struct DataRequest {
  /// Name in named_datasets(), or a path: a folder of IDX or CIFAR files, a .csv or .tsv file
  /// (perhaps .gz or .xz), or a .npy or .npz file of examples.
  std::string dataset{};
  /// Folder with the files of data sets that are given by name. The files are in its subfolder with
  /// the data set's name, or in the folder itself. If empty, the folder is data/.
  std::string dir{};
  /// Schema of a table that is given by its path: a file, or the name of a schema that comes with
  /// the program; if empty, the file PATH.schema.toml is used if it exists. A table that is given
  /// by name has a schema of its own.
  std::string schema{};
  /// Path of a .npy file with the labels of a .npy file of examples.
  std::string labels_path{};
  /// Path of the test set, for data given by path: a table, or the file of an array of features;
  /// empty if there is no test set.
  std::string test_path{};
  std::string test_labels_path{};
  ArrayOptions arrays{};  ///< how .npy and .npz files are read
  /// Arrays in the calling program's memory to use instead of the files `dataset` and `test_path`,
  /// which are then only the arrays' names. Null: read the files.
  std::shared_ptr<const GivenArrays> given{};
  bool test_is_public = false;         ///< the user declares the test rows public
  bool accept_private_bounds = false;  ///< take missing parts of the schema from private rows
  /// Treatment of cells and rows that cannot be read: they are errors, or they count as missing
  /// values.
  Malformed malformed = Malformed::refuse;
  bool size_is_public = false;  ///< the user declares the number of training rows public
  int classes = 0;     ///< number of classes, 2 to 256, if labels are numbers; 0: ten, in a folder
  TextOptions text{};  ///< how texts are read
  /// Rows of the training table that an earlier process of a resumed run converted to features. If
  /// the table and its schema have not changed, they are used instead of reading the table again,
  /// and are moved out of this object. Null if there are none.
  std::shared_ptr<KeptTable> kept{};
  /// Whether features of training and test examples are kept in memory or in a file.
  RowStorage storage{};
  /// Rank (process) for which the data are read, and number of ranks: each rank keeps only its own
  /// range of the training and test examples.
  Share share{};
  /// Decides at random which rows of a table or matrix become test rows instead of training rows
  /// (--holdout); nullopt if none do. Ignored for data that have test rows of their own.
  std::optional<HoldOutDraws> holdout{};
  /// Tokenizer and vocabulary of a trained model, used instead of the options `text`; null if there
  /// is no trained model.
  std::shared_ptr<const TextCoder> coder{};
  /// Receives the fraction of the table or matrix read, to show on a terminal. May be null.
  Busy* progress = nullptr;
};

}  // namespace cudp
