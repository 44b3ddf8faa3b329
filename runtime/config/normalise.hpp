#pragma once

namespace cudp {

/// The change to the numbers of each example by itself, before a model sees them.
enum class Normalise {
  none,
  unit,  ///< divided by their L2 norm
  layer  ///< their mean subtracted, then divided by their standard deviation
};

}  // namespace cudp
