#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/request.hpp"

namespace cudp {

/// Reads a data set. Throws InputError: one line with file, record or byte, expected, found, also
/// where the files of a name are not the published ones; Error where memory does not suffice.
DataSplit load_data(const DataRequest& request);

/// Every row of a table given by path (of request.test_path, where that is given, with what the
/// schema leaves open read from the training table request.dataset); of any other data set its test
/// examples. Throws what load_data throws.
TestData load_test_data(const DataRequest& request);

}  // namespace cudp
