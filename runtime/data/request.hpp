#pragma once
#include <memory>
#include <optional>
#include <string>

#include "runtime/config/malformed.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/data/share.hpp"
#include "runtime/data/text_options.hpp"

namespace cudp {

class Busy;
struct TextCoder;

/// Which data set is to be read, and how.
struct DataRequest {
  /// A name of named_datasets(), or a path: a folder of IDX or CIFAR files, a .csv/.tsv file
  /// (plain, .gz or .xz), or a .npy or .npz file of features.
  std::string dataset{};
  /// The folder with the files of named data sets, in DIR/NAME/ or DIR/ itself; empty: data/.
  std::string dir{};
  /// A schema file for a table given by path, or the name of a shipped one; empty: PATH.schema.toml
  /// if it exists. A named table has the shipped one.
  std::string schema{};
  /// The .npy file of a .npy file's labels.
  std::string labels_path{};
  /// The test table of a table given by path, or features of features; empty: there is no test set.
  std::string test_path{};
  std::string test_labels_path{};
  bool test_is_public = false;         ///< the user declares the test rows public
  bool accept_private_bounds = false;  ///< read what a schema leaves open from the private rows
  /// The fate of cells of a table that cannot be read.
  Malformed malformed = Malformed::refuse;
  bool size_is_public = false;  ///< the user declares the number of training rows public
  int classes = 0;              ///< of labels that are numbers, 2 to 256; 0: a folder's ten
  TextOptions text{};           ///< how texts are read
  /// Whose range of either part is read, which says so (Dataset::first) where that is not all.
  Share share{};
  /// Asked of a table or matrix without test rows: those that are held out are in their place.
  /// Other data is read as it is.
  std::optional<HoldOutCoins> holdout{};
  /// The coder of a trained model, in place of what `text` asks for.
  std::shared_ptr<const TextCoder> coder{};
  /// Hears how much of a table or a matrix has been read, which is for a terminal alone; null: none
  /// does.
  Busy* progress = nullptr;
};

}  // namespace cudp
