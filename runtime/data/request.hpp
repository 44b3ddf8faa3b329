#pragma once
#include <memory>
#include <string>

#include "runtime/data/text_options.hpp"

namespace cudp {

struct TextCoder;

/// Which data set is to be read, and how.
struct DataRequest {
  /// A name of named_datasets(), or a path: a folder of IDX or CIFAR files, or a .csv/.tsv file
  /// (plain, .gz or .xz).
  std::string dataset{};
  /// The folder with the files of named data sets, in DIR/NAME/ or DIR/ itself; empty: data/.
  std::string dir{};
  /// A schema file for a table given by path; empty: PATH.schema.toml if it exists. A named table
  /// has the shipped one.
  std::string schema{};
  /// The test table of a table given by path; empty: there is no test set.
  std::string test_path{};
  bool test_is_public = false;         ///< the user declares the test rows public
  bool accept_private_bounds = false;  ///< read what a schema leaves open from the private rows
  bool size_is_public = false;         ///< the user declares the number of training rows public
  int classes = 0;     ///< of a folder's labels, 2 to 256; 0: the ten that its format is known for
  TextOptions text{};  ///< how texts are read
  /// The coder of a trained model, in place of what `text` asks for.
  std::shared_ptr<const TextCoder> coder{};
};

}  // namespace cudp
