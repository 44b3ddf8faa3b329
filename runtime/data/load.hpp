#pragma once
#include <cstdint>
#include <string>

#include "runtime/dataset.hpp"

namespace cudp {

struct DataRequest {
  /// glyphs, mnist, fashion-mnist, cifar-10, adult, bank, or a path: a folder of IDX or CIFAR
  /// files, or a .csv/.tsv file (plain, .gz or .xz).
  std::string dataset;
  std::string dir;     ///< where the files of a named data set are; DIR/NAME/ or DIR/ itself
  std::string schema;  ///< a schema file for a table; empty: PATH.schema.toml if it exists
  std::string
      test_path;  ///< the test table of a table given by path; empty holds out test_fraction
  double test_fraction = 0.2;    ///< for tables without a split
  std::uint64_t split_seed = 0;  ///< which rows are held out: a function of row number and this
  bool accept_private_bounds = false;  ///< scale numericals by bounds read from the private data
  bool size_is_public = false;         ///< the user declares the number of training rows public
};

/// Reads a data set. Throws InputError: one line with file, record or byte, expected, found.
DataSplit load_data(const DataRequest& request);

/// Names with a public size, for help texts: glyphs, mnist, ...
bool is_named_dataset(const std::string& name);

}  // namespace cudp
