#pragma once

namespace cudp {

/// How the features of each example are normalised before they enter the model. The result depends
/// on that example only.
enum class Normalise {
  none,
  unit,  ///< divide by the L2 norm
  layer  ///< subtract the mean, then divide by the standard deviation
};

}  // namespace cudp
