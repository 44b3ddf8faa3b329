#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Examples of a linear model in tiles of 16 examples, with the features of a tile's examples next
/// to each other. A constant feature 1, for the bias, is appended: d = features + 1.
struct LinearData {
  AlignedVector<float> features;  ///< [tiles, d, 16], features of 16 examples per tile
  AlignedVector<float> signs;     ///< [tiles, 16], class -1 or 1; 0 for unused entries
  AlignedVector<float> norms;     ///< [tiles, 16], |x| rounded up; 1 for unused entries
  std::int64_t tiles = 0;
  int d = 0;
};

/// Throws InputError unless the data set `train` has exactly two classes.
void check_linear_data(const Dataset& train);

/// Returns all examples of the data set in tiles. An example with a feature that is not finite is
/// replaced by zeros (sign 0 and features 0), so that it adds nothing to any sum.
LinearData linear_data(const Dataset& data);
LinearData linear_data(const Dataset& data, std::span<const std::uint32_t> examples);

}  // namespace cudp
