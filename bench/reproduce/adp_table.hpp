#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Table 2 of Wu et al. 2021: ADP-SGD compared with DP-SGD at step sizes 1 / sqrt(20 + t), for
/// several training lengths and clipping norms. Here with logistic regression on MNIST.
ReproducedTable adp_table2(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp
