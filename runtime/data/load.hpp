#pragma once
#include <memory>
#include <string>

#include "runtime/data/dataset.hpp"
#include "runtime/data/text_options.hpp"

namespace cudp {

struct DataRequest {
  /// glyphs, sentences, mnist, fashion-mnist, cifar-10, adult, bank, ipums-br, imdb, or a path: a
  /// folder of IDX or CIFAR files, or a .csv/.tsv file (plain, .gz or .xz).
  std::string dataset{};
  /// Where the files of a named data set are: in DIR/NAME/ or DIR/ itself; empty: data/.
  std::string dir{};
  /// A schema file for a table given by path; empty: PATH.schema.toml if it exists. adult, bank,
  /// ipums-br and imdb have the shipped one.
  std::string schema{};
  /// The test table of a table given by path; empty: there is no test set.
  std::string test_path{};
  bool test_is_public = false;         ///< the user declares the test rows public
  bool accept_private_bounds = false;  ///< read what a schema leaves open from the private rows
  bool size_is_public = false;         ///< the user declares the number of training rows public
  int classes = 0;     ///< of a folder's labels, 2 to 256; 0: the ten that its format is known for
  TextOptions text{};  ///< how texts are read
  /// Of a trained model, in place of what `text` asks for.
  std::shared_ptr<const TextCoder> coder{};
};

/// Reads a data set. Throws InputError: one line with file, record or byte, expected, found, also
/// where the files of a name are not the published ones; Error where memory does not suffice.
DataSplit load_data(const DataRequest& request);

/// Examples to score a model on.
struct TestData {
  std::string name;
  Dataset examples;
};

/// Every row of a table given by path (of request.test_path, where that is given, with what the
/// schema leaves open read from the training table request.dataset); of any other data set its test
/// examples. Throws what load_data throws.
TestData load_test_data(const DataRequest& request);

/// Names with a public size, for help texts: glyphs, mnist, ...
bool is_named_dataset(const std::string& name);

}  // namespace cudp
