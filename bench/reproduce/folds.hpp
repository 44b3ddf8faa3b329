#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Every example of a split in one set, the training examples first.
Dataset whole(const DataSplit& split);

/// Cuts a data set into `folds` parts at random, the same for the same seed, and gives for each the
/// split that tests on it and trains on the others. Seeded numbers: for experiments only.
std::vector<DataSplit> cross_validation(const Dataset& all, int folds, std::uint64_t seed);

}  // namespace cudp
