#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns all examples of a split in one set, the training examples first.
Dataset whole(const DataSplit& split);

/// Divides a data set at random into `folds` parts. Returns for each part the split that tests on
/// it and trains on the others. The same seed gives the same parts, so this is for experiments
/// only.
std::vector<DataSplit> cross_validation(const Dataset& all, int folds, std::uint64_t seed);

}  // namespace cudp
