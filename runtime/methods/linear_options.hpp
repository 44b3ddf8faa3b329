#pragma once

namespace cudp {

/// Options that methods of linear models share.
struct LinearOptions {
  double l2 = 0.001;       ///< lambda
  double loss_clip = 3.0;  ///< C_obj
};

}  // namespace cudp
