#pragma once

namespace cudp {

/// How the features of each example are normalised, by themselves, before the model sees them.
enum class Normalise {
  none,
  unit,  ///< divide by the L2 norm
  layer  ///< subtract the mean, then divide by the standard deviation
};

}  // namespace cudp
