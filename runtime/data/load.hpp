#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/request.hpp"

namespace cudp {

/// Reads a data set. Throws InputError if a file is missing or malformed, or if a file of a data
/// set given by name does not have the published content; the message is one line with the file,
/// the position in it, and what was expected and found. Throws Error if memory does not suffice.
DataSplit load_data(const DataRequest& request);

/// Reads examples to score with a model: every row of the table or matrix request.dataset, or the
/// test examples of another data set. If a table is given with request.test_path, returns the rows
/// of that file; missing parts of the schema are then read from request.dataset, the training
/// table. Throws InputError if a file is missing or malformed, Error if memory does not suffice.
TestData load_test_data(const DataRequest& request);

}  // namespace cudp
