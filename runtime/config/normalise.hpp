#pragma once

namespace cudp {

/// Change to the numbers of each example by itself, before the model sees them.
enum class Normalise {
  none,
  unit,  ///< divide by the L2 norm
  layer  ///< subtract the mean, then divide by the standard deviation
};

}  // namespace cudp
