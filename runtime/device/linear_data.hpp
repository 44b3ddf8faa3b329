#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Examples in the tiles of kernels/linear/linear_model.hpp, with the constant feature added.
struct LinearData {
  AlignedVector<float> features;  ///< [tiles, d, 16]
  AlignedVector<float> signs;     ///< [tiles, 16]; 0: none
  AlignedVector<float> norms;     ///< [tiles, 16], |x| rounded up; 1 where there is none
  std::int64_t tiles = 0;
  int d = 0;
};

/// Throws InputError unless `train` has two classes.
void check_linear_data(const Dataset& train);

/// The examples listed, or all. An example with a feature that is not finite is left out: its sign
/// is 0 and its features are.
LinearData linear_data(const Dataset& data);
LinearData linear_data(const Dataset& data, std::span<const std::uint32_t> examples);

}  // namespace cudp
