#pragma once

namespace cudp {

/// Options of the methods for linear models, such as DP-AGD and output perturbation.
struct LinearOptions {
  double l2 = 0.001;       ///< lambda, weight of the L2 regulariser per example
  double loss_clip = 3.0;  ///< C_obj, maximum that losses are clipped to
};

}  // namespace cudp
