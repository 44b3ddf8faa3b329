#pragma once

namespace cudp {

/// Options that several methods for linear models share.
struct LinearOptions {
  double l2 = 0.001;       ///< lambda, weight of the L2 regulariser per example
  double loss_clip = 3.0;  ///< C_obj, maximum that losses are clipped to
};

}  // namespace cudp
