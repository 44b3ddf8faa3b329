#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Examples of a linear model, in the tiles of kernels/linear/linear_model.hpp, with a constant
/// feature 1 appended.
struct LinearData {
  AlignedVector<float> features;  ///< [tiles, d, 16]
  AlignedVector<float> signs;     ///< [tiles, 16]; 0 for an unused slot
  AlignedVector<float> norms;     ///< [tiles, 16], |x| rounded up; 1 for an unused slot
  std::int64_t tiles = 0;
  int d = 0;
};

/// Throws InputError unless `train` has two classes.
void check_linear_data(const Dataset& train);

/// Returns all examples, or the listed ones. An example with a feature that is not finite is
/// dropped: its sign and features are 0.
LinearData linear_data(const Dataset& data);
LinearData linear_data(const Dataset& data, std::span<const std::uint32_t> examples);

}  // namespace cudp
