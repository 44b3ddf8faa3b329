#pragma once

namespace cudp {

/// Options shared by methods for linear models.
struct LinearOptions {
  double l2 = 0.001;       ///< lambda, weight of the regulariser
  double loss_clip = 3.0;  ///< C_obj, maximum that losses are clipped to
};

}  // namespace cudp
