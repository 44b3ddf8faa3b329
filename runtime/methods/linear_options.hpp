#pragma once

namespace cudp {

/// Options shared by methods for linear models.
struct LinearOptions {
  double l2 = 0.001;       ///< lambda
  double loss_clip = 3.0;  ///< C_obj
};

}  // namespace cudp
